"""`pooled`: what it plans, what it refuses, and what it delivers from larger rounds than the contract's."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.answers import half_widths, to_bytes
from numpy.typing import NDArray

from equipoise.accounting import events_from_json
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.fixed_point import on_grid
from equipoise.queries.predicates import Among, attribute
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import GRID_BITS, Outcome, PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise, LaplaceNoise
from equipoise_server.mechanisms.pooled.mechanism import Pooled
from equipoise_server.mechanisms.pooled.plan import PooledParameters
from equipoise_server.mechanisms.registry import mechanism

ADULT = (16, 7, 15, 5, 2, 2, 10)  # the sizes of a well-known table's attributes
SCHEMA = Schema.from_json('{"a": 4, "b": 3, "c": 2, "d": 2}')
RECORDS = 20_000


def adult(analysts: int, unit: str, **options: object) -> PublicParameters:
    """Analysts with five tables each, over 336,000 records that can exist; tables are expected to err less."""
    shares = tuple(Share(f"analyst-{number}", 5, 3000) for number in range(analysts))
    data, own = Budget(1.0, 1 / 48_842**2), Budget(1.0, 1e-6)
    return PublicParameters(48_842, 336_000, shares, unit, data, own, 0.05, options, ADULT)


def small(asked: Mapping[str, CompiledWorkload], unit: str = "query", **options: object) -> PublicParameters:
    """Everybody's shares are used up."""
    shares = tuple(Share(name, own.statement_count, own.query_count) for name, own in asked.items())
    data = Budget(2.0, 1 / RECORDS**2)
    options = {"ways": 2, "residuals": 0} | options
    return PublicParameters(RECORDS, 48, shares, unit, data, Budget(4.0, 1e-6), 0.05, options, SCHEMA.sizes)


def records() -> NDArray[np.int64]:
    """Dependent attributes, and empty cells."""
    weights = np.arange(48) ** 3 * (np.arange(48) % 5 > 0)
    counts: NDArray[np.int64] = weights * RECORDS // weights.sum()
    counts[-1] += RECORDS - counts.sum()
    return counts


def asking(**statements: Sequence[Statement]) -> dict[str, CompiledWorkload]:
    """Compiled workloads by analyst."""
    return {name: compile_workload(list(own), SCHEMA) for name, own in statements.items()}


def played(
    setting: PublicParameters, asked: Mapping[str, CompiledWorkload], seed: int = 0
) -> tuple[MechanismPlan, Outcome]:
    """A plan, and a run of it."""
    plan = Pooled().plan(setting)
    return plan, Pooled().run(
        setting, plan, DenseCounts(records(), setting.attributes), asked, seed.to_bytes(32), lambda *_: None
    )


@pytest.mark.parametrize(
    ("analysts", "unit", "chosen"),
    [(1000, "analyst", "pooled"), (100, "query", "pooled"), (10, "query", "gaussian"), (10, "analyst", "gaussian")],
)
def test_it_promises_more_than_independent_noise_where_many_ask(analysts: int, unit: str, chosen: str) -> None:
    setting = adult(analysts, unit)
    promised = {name: mechanism(name).plan(setting).max_half_width for name in ("pooled", "gaussian", "laplace")}
    assert min(promised, key=promised.__getitem__) == chosen
    # Five tables of Adult each, at epsilon 1: the noise's own reach, whatever the synopsis says.
    assert promised["pooled"] <= 0.0075


def test_the_demand_is_hidden_by_the_noise_that_reaches_less_far() -> None:
    """One statement moves two votes: Laplace noise; an analyst with five statements ten: Gaussian."""
    query, analyst = (parameters_of(Pooled().plan(adult(100, unit))) for unit in ("query", "analyst"))
    assert isinstance(query.demand.noise, LaplaceNoise)
    assert query.demand.l1_sensitivity == 2
    assert isinstance(analyst.demand.noise, GaussianNoise)
    assert analyst.demand.l1_sensitivity == 10


def test_an_analyst_moves_no_more_votes_than_there_are_sets() -> None:
    setting = adult(100, "analyst", ways=1, residuals=0)
    many = replace(setting, shares=(*setting.shares, Share("another", 500, 5000)))
    assert parameters_of(Pooled().plan(many)).demand.l1_sensitivity == len(ADULT)


def parameters_of(plan: MechanismPlan) -> PooledParameters:
    return PooledParameters.from_json(plan.parameters)


@pytest.mark.parametrize("residuals", [0, 1])
def test_what_no_table_of_the_family_tells_is_answered_without_an_interval(residuals: int) -> None:
    """Tables over more attributes, of all records or of some: whatever shares allow is answered."""
    some = Marginal(("b", "a"), where=attribute("a") == "1")
    wider = Marginal(("b", "a"), where=attribute("c") == "1")
    asked = asking(ana=NARROW, ben=[NARROW[1], some, WIDE, wider, NARROW[2]])
    plan, outcome = played(small(asked, residuals=residuals), asked)
    own = outcome.answers["ben"]
    outside = np.repeat([False, False, True, True, False], np.diff(asked["ben"].statement_offsets))
    assert (own.methods[outside] == AnswerMethod.UNCERTIFIED).all()
    within = np.repeat([False, True, False, False, False], np.diff(asked["ben"].statement_offsets))
    assert own.certified[within].all()
    assert not own[within].misses(asked["ben"].counts(records())[within] / RECORDS).any()
    assert own.certified[~outside][:2].all()
    assert plan.max_uncertified == small(asked).queries
    assert np.abs(own.values / 2.0**GRID_BITS - asked["ben"].counts(records()) / RECORDS).max() < 0.2
    # What holds for all records is the whole table, which the family tells.
    everything = (attribute("a") == "1") | ~(attribute("a") == "1")
    whole = asking(ana=[Marginal(("b", "a"), where=everything)])
    assert played(small(whole, residuals=residuals), whole)[1].answers["ana"].certified.all()
    # A family of all sets leaves nothing out.
    assert Pooled().plan(small(asked, residuals=residuals, ways=4, summed=12)).max_uncertified == 0


@pytest.mark.parametrize("unit", ["query", "analyst"])
@pytest.mark.parametrize("share", [0, 0.3])
def test_parameters_are_read_back_as_they_were_written(unit: str, share: float) -> None:
    plan = Pooled().plan(adult(40, unit, repair_share=share))
    assert parameters_of(plan).to_json() == plan.parameters
    assert json.loads(plan.parameters)["floor"] == "2/105"


def test_the_charges_are_the_caps() -> None:
    setting = adult(100, "query")
    plan = Pooled().plan(setting)
    (tables,) = events_from_json(plan.data_events)
    assert tables.name == "tables"
    parameters = parameters_of(plan)
    sets = len(parameters.family.sets)
    assert sets == 63
    for votes in ([0] * sets, [500] + [0] * (sets - 1), list(range(sets))):
        rhos = parameters.rhos(votes)
        assert set(parameters.family.largest) <= rhos.keys()
        assert sum(rhos.values()) <= Fraction(plan.data_cost.rho, 10**12)
        assert min(rhos[axes] for axes in parameters.family.largest) * 105 >= 2 * Fraction(parameters.rho, 10**12)


@pytest.mark.parametrize(
    ("change", "field", "problem"),
    [
        ({"attributes": ()}, "attributes", "must be given"),
        ({"attributes": (16, 7, 15)}, "attributes", "multiply"),
        (
            {"universe_size": 2**25, "attributes": (2**12, 2**13), "options": {"repair_share": 0.5}},
            "options.repair_share",
            "must be 0, or left out, where there are more than 16,777,216",
        ),
        ({"options": {"cells": 1}}, "options.cells", "between 2"),
        ({"options": {"ways": 1.5}}, "options.ways", "whole"),
        ({"options": {"floor": 0}}, "options.floor", "between 0.01"),
        ({"options": {"floor": float("nan")}}, "options.floor", "between"),
        ({"options": {"ways": True}}, "options.ways", "number"),
        (
            {"universe_size": 2**22, "attributes": (2,) * 22, "options": {"ways": 3}},
            "options.ways",
            "1,793 tables; at most 1024",
        ),
        ({"universe_size": 9, "attributes": (3, 3), "options": {"cells": 2}}, "options.cells", "allows no table"),
    ],
)
def test_what_cannot_be_planned_is_refused_by_name(change: dict[str, object], field: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem) as refused:
        Pooled().plan(replace(adult(2, "query"), **change))  # type: ignore[arg-type]
    assert refused.value.field == field


@pytest.mark.parametrize("field", ["data_budget", "analyst_budget"])
def test_a_budget_too_small_for_its_noise_is_refused(field: str) -> None:
    with pytest.raises(BudgetExhausted, match=f"^{field}: "):
        Pooled().plan(replace(adult(2, "query"), **{field: Budget(1e-9, 1e-15)}))  # type: ignore[arg-type]


WIDE = Marginal(("a", "b", "c"))
SHARES = (Share("ana", 2, 60), Share("ben", 2, 60))
NARROW = (Marginal(("b", "a")), Marginal(("d",)), (attribute("a") == "1") & (attribute("d") == "0"))


@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_answers_from_the_synopsis_are_what_the_downloaded_table_says(unit: str) -> None:
    asked = asking(ana=NARROW, ben=[Marginal(("c", "d"))], cyd=[Among("b", ("0", "2")) | (attribute("a") == "3")])
    plan, outcome = played(small(asked, unit, summed=12), asked)
    assert all(own.certified.all() for own in outcome.answers.values())
    assert outcome.synopsis.cells.dtype == np.int64
    assert len(outcome.synopsis) == parameters_of(plan).synopsis
    for name, workload in asked.items():
        own = outcome.answers[name]
        told = on_grid(outcome.synopsis.counts(workload), len(outcome.synopsis))
        served = own.methods == AnswerMethod.FITTED
        assert served.mean() > 0.9
        assert np.array_equal(own.values[served], told[served])
        check_intervals(workload, outcome, name, plan)


WIDE_CONDITION = (attribute("a") == "0") & (attribute("b") == "1") & (attribute("c") == "1")
NARROW_CONDITION = attribute("a") == "0"


def check_intervals(workload: CompiledWorkload, outcome: Outcome, name: str, plan: MechanismPlan) -> None:
    own = outcome.answers[name]
    truth = workload.counts(records()) / RECORDS
    assert not own.misses(truth).any()
    assert half_widths(own).max(initial=0) <= plan.max_half_width


def test_predicates_over_many_cells_stay_uncertified_unless_the_promise_covers_them() -> None:
    both = attribute("a") == "0", attribute("b") == "1"
    half = (both[0] | both[1]) & ~(both[0] & both[1])
    asked = asking(ana=[*NARROW, half])
    # Room for so many predicates that all of them together need a wide reach.
    share = Share("ana", 10**6, 10**7)
    plan, outcome = played(replace(small(asked, floor=1), shares=(share,)), asked)
    wider, told = played(replace(small(asked, floor=1, summed=3), shares=(share,)), asked)
    assert outcome.answers["ana"].methods[-1] == AnswerMethod.UNCERTIFIED
    assert (~outcome.answers["ana"].certified).sum() == 1
    assert told.answers["ana"].methods[-1] == AnswerMethod.FITTED
    assert plan.max_half_width < wider.max_half_width
    # Where shares have room for predicates only, nobody can lose by a promise that covers them.
    assert Pooled().plan(small(asking(ana=[half]), ways=4, repair_share=0)).max_uncertified == 0


def test_predicates_of_small_tables_are_certified_however_many_are_declared() -> None:
    """Their reach is wider than a cell's where there are more of them than cells; the promise must cover it."""
    asked = asking(ana=[attribute("c") == "1", Marginal(("d",))])
    setting = replace(small(asked, ways=1, cells=2, floor=1), shares=(Share("ana", 2**39, 2**40),))
    _, outcome = played(setting, asked)
    assert (outcome.answers["ana"].certified).all()


def test_an_answer_that_the_measured_table_contradicts_is_replaced_by_it() -> None:
    """A synopsis of one record says 0 or 1 to everything."""
    asked = asking(ana=NARROW)
    plan, outcome = played(small(asked, synopsis=1, summed=12), asked)
    own = outcome.answers["ana"]
    assert (own.methods == GaussianNoise.method).sum() > 3
    check_intervals(asked["ana"], outcome, "ana", plan)


@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_options_of_a_repair_that_is_not_planned_are_refused(unit: str) -> None:
    asked = asking(ana=NARROW, ben=NARROW)
    for name in ("cut_off", "threshold", "repair_rounds"):
        with pytest.raises(InvalidArgument, match=f"options.{name}: has no effect without repair"):
            Pooled().plan(small(asked, unit, **{name: 1}))
    with pytest.raises(InvalidArgument, match=r"repair_rounds: has no effect where unit is query"):
        Pooled().plan(small(asked, repair_share=0.5, repair_rounds=1))


def test_rounds_with_conditions_keep_a_part_of_the_budget_for_those_about_many_attributes() -> None:
    """Nothing public tells how many attributes conditions are about. Tables beside them change nothing."""
    conditions = asking(ana=[WIDE_CONDITION, NARROW_CONDITION], ben=[NARROW_CONDITION])
    _, outcome = played(small(conditions), conditions)
    for name, workload in conditions.items():
        assert not outcome.answers[name].misses(workload.counts(records()) / RECORDS).any()
    mixed = Share("ana", 100, 199), Share("ben", 2, 60)
    for shares, repairs in ((mixed, True), ((Share("ana", 100, 200), mixed[1]), False)):
        plan = Pooled().plan(replace(small(conditions), shares=shares))
        assert (parameters_of(plan).repair is not None) == repairs


@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_statements_outside_the_family_are_repaired_where_that_is_planned(unit: str) -> None:
    """With places for all: intervals hold, and what is inside the family is answered as without repair."""
    asked = asking(ana=[WIDE, NARROW[0], Marginal(("a", "c", "d"))], ben=[NARROW[1]], cyd=[WIDE])
    cut_off = {"query": 3, "analyst": 3}[unit]
    generous = replace(
        small(asked, unit, repair_share=0.5, cut_off=cut_off, summed=12), data_budget=Budget(40, 1e-9)
    )
    plan = Pooled().plan(generous)
    assert {part.name for part in events_from_json(plan.data_events)} > {"tables", "samplers"}
    outcome = Pooled().run(
        generous, plan, DenseCounts(records(), generous.attributes), asked, bytes(32), lambda *_: None
    )
    certified = parameters_of(plan).certified
    for name, workload in asked.items():
        check_intervals(workload, outcome, name, plan)
    inside = half_widths(outcome.answers["ana"][24:36])
    assert (inside <= certified / 2**GRID_BITS).all()
    uncertified = sum((~own.certified).sum() for own in outcome.answers.values())
    assert uncertified <= plan.max_uncertified
    if unit == "query":
        assert uncertified == plan.max_uncertified == 0


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_what_one_asks_outside_the_family_is_nobody_else_s_business(unit: str) -> None:
    """It votes for nothing, and everybody who needs a repair place gets one."""
    seen = []
    for wide in (WIDE, Marginal(("a", "c", "d")), Marginal(("b", "c", "d"))):
        asked = asking(ana=[NARROW[0], WIDE], ben=[wide, wide])
        setting = replace(small(asked, unit, repair_share=0.5, cut_off=2), shares=SHARES)
        _, outcome = played(setting, asked)
        own = outcome.answers["ana"]
        seen.append([outcome.synopsis.cells.tobytes(), to_bytes(own)])
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.slow
def test_hiding_repair_places_is_paid_from_the_analysts_budget() -> None:
    with_places = Pooled().plan(adult(400, "analyst", repair_share=0.3, cut_off=10))
    names = [part.name for part in events_from_json(with_places.analyst_events)]
    assert "repair places" in names
    demand, without = (parameters_of(plan).demand for plan in (with_places, Pooled().plan(adult(400, "analyst"))))
    assert isinstance(demand.noise, GaussianNoise)
    assert isinstance(without.noise, GaussianNoise)
    assert demand.noise.variance > without.noise.variance


def test_what_is_asked_most_is_told_best() -> None:
    """Everybody asks for one table: its intervals are the narrowest."""
    popular, rare = Marginal(("a", "b")), Marginal(("c", "d"))
    asked = asking(**{f"analyst-{number}": [popular] for number in range(60)}, other=[rare])
    _, outcome = played(small(asked), asked)
    errors = [float(outcome.answers[name].standard_errors.mean()) for name in ("analyst-0", "other")]
    widths = [float(half_widths(outcome.answers[name]).mean()) for name in ("analyst-0", "other")]
    assert errors[0] < 0.7 * errors[1]
    assert widths[0] < 0.7 * widths[1]


def test_a_small_table_that_many_ask_for_is_measured_by_itself() -> None:
    asked = asking(**{f"analyst-{number}": [Marginal(("a",))] for number in range(60)})
    setting = small(asked)
    parameters = parameters_of(Pooled().plan(setting))
    votes = [60 if axes == (0,) else 0 for axes in parameters.family.sets]
    assert set(parameters.rhos(votes)) == {(0,), *itertools.combinations(range(4), 2)}
    assert set(parameters.rhos([0] * len(votes))) == set(itertools.combinations(range(4), 2))
