"""Sums: within their intervals by every mechanism that is proven for them, refused by name by all others."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.answers import half_widths
from harness.mechanism_cases import OPTIONS, SEED, TABLE, UNITS, case_of, spread

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.fixed_point import ONE
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Marginal, Sum
from equipoise.queries.statistics import grid_units
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.checking import ANSWERING_SUMS
from equipoise_server.mechanisms.low_sensitivity.database_question import database_of, statistic_of
from equipoise_server.mechanisms.registry import MECHANISMS, SESSION_MECHANISMS, check_workload

CASE = case_of(
    TABLE,
    spread(2000, 12),
    {
        "ana": [Sum("a", ("b",)), Marginal(("b",)), Sum("a", ("c", "b"), where=attribute("a") != "0")],
        "ben": [Sum("a", high=1), Sum("a", where=attribute("c") == "1")],
        "cyd": [Sum("a", ("b",), where=(attribute("a") == "0") & (attribute("a") == "1"))],
    },
)
EVERYTHING: dict[str, object] = {"ways": 3, "cells": 1 << 16}  # a family that holds all tables
ANSWERING = sorted(ANSWERING_SUMS & MECHANISMS.keys())
REFUSING = sorted(MECHANISMS.keys() - ANSWERING_SUMS)


def plan_of(name: str, unit: str, options: dict[str, object]) -> MechanismPlan:
    return MECHANISMS[name].plan(replace(CASE.setting, unit=unit, options=options))


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERING)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("scale", [1, 10])
def test_sums_lie_in_their_intervals_and_these_are_as_promised(name: str, unit: str, scale: int) -> None:
    """With little noise and with very little, where the rounding to whole records is as large as the noise."""
    setting = replace(
        CASE.setting,
        unit=unit,
        options=EVERYTHING if name == "pooled" else {},
        data_budget=Budget(float(scale), 2.5e-7),
    )
    plan = MECHANISMS[name].plan(setting)
    for workload in CASE.workloads.values():
        check_workload(plan, workload)
    data = DenseCounts(CASE.histogram, setting.attributes)
    for seed in (SEED, bytes(32)):
        outcome = MECHANISMS[name].run(setting, plan, data, CASE.workloads, seed, lambda *_: None)
        for analyst, answers in outcome.answers.items():
            workload = CASE.workloads[analyst]
            answers.check()
            assert answers.certified.any()
            assert not answers.misses(workload.counts(CASE.histogram) / setting.records).any()
            assert half_widths(answers).max(initial=0) <= plan.max_half_width


def test_an_unrounded_sum_lies_at_most_a_record_above() -> None:
    workload = CASE.workloads["ana"]
    histogram = spread(1999, 12)
    exact = workload.expectations(histogram.astype(np.float64))
    above = exact - workload.counts(histogram)
    assert ((above >= 0) & (above < 1)).all()
    assert (above > 0).any()


@pytest.mark.parametrize("name", REFUSING)
def test_mechanisms_that_are_not_proven_for_sums_refuse_them_by_name(name: str) -> None:
    plan = plan_of(name, "query", OPTIONS.get(name, {}))
    counts_first = compile_workload([Marginal(("b",)), Sum("a")], TABLE)
    with pytest.raises(InvalidArgument, match=f"is a sum, which {name} does not answer") as refused:
        check_workload(plan, counts_first)
    assert refused.value.field == "statements[1]"
    check_workload(plan, compile_workload([Marginal(("b",))], TABLE))


def test_sessions_of_online_take_sums() -> None:
    for each in (Sum("a"), Sum("a", ("b", "c"), where=attribute("a") != "0")):
        SESSION_MECHANISMS["online"].check_statement(SESSION_PLAN, compile_workload([each], TABLE))


def test_sessions_of_online_private_take_sums_by_cells_and_low_sensitivity_single_ones() -> None:
    single, table = (compile_workload([each], TABLE) for each in (Sum("a"), Sum("a", ("b",))))
    for each in (single, table):
        SESSION_MECHANISMS["online_private"].check_statement(SESSION_PLAN, each)
    assert statistic_of(single).sensitivity(2000) == Fraction(1, 2000)
    with pytest.raises(InvalidArgument, match="is a table; low_sensitivity answers single numbers"):
        statistic_of(table)


@pytest.mark.parametrize("records", [1999, 2000])
def test_a_sum_as_a_statistic_is_the_sum_that_every_other_mechanism_answers(records: int) -> None:
    """Rounded down to whole records, and then to the grid; a replaced record moves it by one record at most."""
    asked, sizes = compile_workload([Sum("a", where=attribute("c") == "1")], TABLE), TABLE.sizes
    histogram = spread(records, 12)
    value = int(statistic_of(asked).values(database_of(sizes, DenseCounts(histogram, sizes)))[0])
    count = int(asked.counts(histogram)[0])
    assert value == count * ONE // records
    for removed, added in itertools.permutations(np.flatnonzero(histogram).tolist(), 2):
        other = histogram.copy()
        other[removed] -= 1
        other[added] += 1
        moved = int(statistic_of(asked).values(database_of(sizes, DenseCounts(other, sizes)))[0])
        assert abs(moved - value) <= grid_units(Fraction(1, records))


SESSION_PLAN = plan_of("gaussian", "query", {})


def test_where_whole_analysts_are_repaired_a_sum_outside_the_family_is_refused_by_name() -> None:
    plan = plan_of("pooled", "analyst", {"ways": 1, "least": 0})
    inside, outside = Sum("a"), Sum("a", ("b",))
    check_workload(plan, compile_workload([inside], TABLE))
    with pytest.raises(InvalidArgument, match="no table of the round holds together") as refused:
        check_workload(plan, compile_workload([inside, outside], TABLE))
    assert refused.value.field == "statements[1]"
    check_workload(plan_of("pooled", "query", {"ways": 1, "least": 0}), compile_workload([outside], TABLE))


def test_what_an_answer_is_worth_is_a_part_of_all_records() -> None:
    """By hand: of 2,000 records the fifth part has the middle value, the tenth the highest one."""
    histogram = np.zeros(12, dtype=np.int64)
    histogram[[0, 4, 8]] = 1400, 400, 200  # of a = 0, 1, 2
    assert compile_workload([Sum("a")], TABLE).counts(histogram).tolist() == [400]
    assert ONE * 400 // 2000 == ONE // 5
