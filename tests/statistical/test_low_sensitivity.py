"""`low_sensitivity` on both neighbour relations: the exact law of tiny sessions against their charge, and an audit.

What all sessions in epochs share is in `test_epochs.py`. Here it is statistics that are asked: their Deltas, their
scale, and the candidates.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.audit_size import SIZES, AuditSize
from numpy.typing import NDArray
from statistical.exact_statistics import (
    CANDIDATES,
    CAPPED,
    DELTAS,
    EXACT_MEDIAN,
    MIDDLE,
    RECORDS,
    ROUNDING,
    SCHEMA,
    SPREAD,
    TABLES,
    analyst_epsilon,
    data_epsilon,
    largest_delta,
    law_on,
    listed,
    parameters_of,
)

from equipoise.accounting import Cost
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.statements import Quantile
from equipoise.queries.statistics import CompiledStatistic
from equipoise.queries.workload_compiler import compile_statistic
from equipoise_lab.audit.clopper_pearson import Outcome, certify
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.low_sensitivity import database_question
from equipoise_server.mechanisms.low_sensitivity.mechanism import LowSensitivity
from equipoise_server.mechanisms.low_sensitivity.parameters import LowSensitivityParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise

MECHANISM = LowSensitivity()
ALL = (MIDDLE, CAPPED, SPREAD, EXACT_MEDIAN)
LEVEL = 1e-7  # of each audit's false alarm


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scale of which a record moves one unit, so that there are few outcomes."""
    monkeypatch.setattr(database_question, "SENSITIVITY", 1)


def taken(declared: Fraction) -> list[CompiledStatistic]:
    """The statements that a session of this declared sensitivity takes."""
    text = LowSensitivityParameters(declared, RECORDS, parameters_of(declared)).to_json()
    plan, some = MechanismPlan(MECHANISM.name, text, Cost(), Cost(), 1.0, 0, 0.0, 0, 1.0), []
    for statement in ALL:
        try:
            MECHANISM.check_statement(plan, statement)
        except InvalidArgument:
            continue
        some.append(statement)
    return some


def uncovered(declared: Fraction) -> float:
    """The most delta, beyond what is charged, that neighbouring tables need for any one statement that is taken."""
    parameters, candidates, worst = parameters_of(declared), listed(CANDIDATES), -1.0
    for statement in taken(declared):
        laws = [law_on(table, [statement], parameters, candidates) for table in TABLES]
        for law, near in itertools.pairwise(laws):
            apart = [largest_delta(law, near, data_epsilon(parameters, 1, delta)) - delta for delta in DELTAS]
            worst = max(worst, *apart)
    return worst


@pytest.mark.sparse(2)
@pytest.mark.full
@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("asked", [(MIDDLE, SPREAD), (CAPPED, MIDDLE)])
def test_a_replaced_record_shows_no_more_than_is_charged(asked: tuple[CompiledStatistic, ...]) -> None:
    parameters = parameters_of(max(each.sensitivity(RECORDS) for each in asked))
    laws = [law_on(table, asked, parameters, listed(CANDIDATES)) for table in TABLES]
    for law, near in itertools.pairwise(laws):
        for delta in DELTAS:
            assert largest_delta(law, near, data_epsilon(parameters, 2, delta)) <= delta + ROUNDING


@pytest.mark.full
@pytest.mark.usefixtures("coarse")
def test_the_charge_is_less_than_twice_what_shows() -> None:
    parameters = parameters_of(MIDDLE.sensitivity(RECORDS))
    laws = [law_on(each, [MIDDLE, MIDDLE], parameters, listed(CANDIDATES)) for each in TABLES[1:3]]
    assert largest_delta(laws[0], laws[1], 0.55 * data_epsilon(parameters, 2, 1e-3)) > 1e-3


@pytest.mark.full
@pytest.mark.usefixtures("coarse")
def test_a_replaced_statement_shows_no_more_than_is_charged_and_shows() -> None:
    # Tests without noise, so that one statement is answered afresh and the other is not.
    parameters = replace(
        parameters_of(Fraction(1, 16)),
        test_epsilon=Fraction(8),
        noise=GaussianNoise(Fraction(1, 4)),
        threshold=2 << 16,
    )
    laws = [
        law_on(TABLES[0], [hidden, SPREAD], parameters, listed(CANDIDATES), hidden=0) for hidden in (SPREAD, MIDDLE)
    ]
    for delta in DELTAS:
        assert largest_delta(laws[0], laws[1], analyst_epsilon(parameters, 2, delta)) <= delta + ROUNDING
    assert largest_delta(laws[0], laws[1], 0.45 * analyst_epsilon(parameters, 2, 1e-3)) > 1e-3


@pytest.mark.usefixtures("coarse")
def test_the_declared_sensitivity_decides_what_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = MIDDLE.sensitivity(RECORDS)
    assert taken(declared) == [MIDDLE, CAPPED, SPREAD]
    assert uncovered(declared) <= ROUNDING
    monkeypatch.setattr(LowSensitivity, "check_statement", lambda self, plan, statement: None)
    assert taken(declared) == list(ALL)
    assert uncovered(declared) > 0.01


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("statement", [MIDDLE, CAPPED])
def test_half_of_a_delta_is_caught(statement: CompiledStatistic, monkeypatch: pytest.MonkeyPatch) -> None:
    half = statement.sensitivity(RECORDS) / 2
    assert statement not in taken(half)
    assert uncovered(half) <= ROUNDING
    shipped = type(statement).sensitivity
    monkeypatch.setattr(type(statement), "sensitivity", lambda self, records: shipped(self, records) / 2)
    assert statement in taken(half)
    assert uncovered(half) > 0.01


@pytest.mark.usefixtures("coarse")
def test_candidates_that_come_from_the_data_tell_them() -> None:
    parameters = parameters_of(MIDDLE.sensitivity(RECORDS))
    own = [listed((tuple(table.tolist()), CANDIDATES[1])) for table in TABLES[1:3]]
    laws = [
        law_on(table, [MIDDLE], parameters, candidates) for table, candidates in zip(TABLES[1:3], own, strict=True)
    ]
    assert largest_delta(laws[0], laws[1], data_epsilon(parameters, 1, 1e-3)) > 0.5


# A shipped session whose single record moves from one end to the other.

MOVED = compile_statistic(Quantile("x", 0.5, 1.0), SCHEMA, "")
SETTING = PublicParameters(
    records=1,
    universe_size=2,
    shares=(Share("a", 2, 2),),
    unit="query",
    data_budget=Budget(0.5, 1e-6),
    analyst_budget=Budget(1.0, 1e-6),
    beta=0.1,
    options={
        "length": 2,
        "sensitivity": "1/2",
        "candidates": [{"cells": [0], "counts": [1]}],
        "threshold": 0.25,
        "prior": "none",
    },
    attributes=SCHEMA.sizes,
)


def played(plan: MechanismPlan, histogram: NDArray[np.int64], run: int) -> Outcome:
    session = MECHANISM.start(SETTING, plan, DenseCounts(histogram), run.to_bytes(32, "big"))
    answers = [session.answer(slot, MOVED) for slot in range(2)]
    # Which side of the middle each lies on, and how it was answered.
    return tuple((int(each.values[0]) >> 39, int(each.methods[0])) for each in answers)


def certified(plan: MechanismPlan, runs: int) -> float:
    low, high = (np.array(counts, dtype=np.int64) for counts in ((1, 0), (0, 1)))
    delta = SETTING.data_budget.delta
    first, second = lambda run: played(plan, low, 2 * run), lambda run: played(plan, high, 2 * run + 1)
    return certify(first, second, runs, delta, LEVEL).epsilon


def test_shipped_sessions_show_no_more_than_their_charge(audit_size: AuditSize) -> None:
    plan = MECHANISM.plan(SETTING)
    assert certified(plan, audit_size.runs // 8) <= epsilon_for(plan.data_cost, SETTING.data_budget.delta)


def test_noise_for_a_smaller_delta_is_refuted() -> None:
    """What moves by 1/2 is asked in a session of 1/1000, which would refuse it."""
    plan = MECHANISM.plan(replace(SETTING, options=dict(SETTING.options) | {"sensitivity": "1/1000"}))
    assert MOVED.sensitivity(1) == Fraction(1, 2)
    with pytest.raises(InvalidArgument, match=r"declared sensitivity is 0\.001"):
        MECHANISM.check_statement(plan, MOVED)
    assert certified(plan, SIZES["fast"].runs // 8) > epsilon_for(plan.data_cost, SETTING.data_budget.delta)
