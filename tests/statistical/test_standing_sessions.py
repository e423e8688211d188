"""Intervals of sessions and rounds that start from a standing measurement: how many hold, and that they are tight.

Each test plays `PLAYED` measurements. `online` and `online_private` are asked for all cells of some tables that
these tell, of the table of `tempting_statements`. `low_sensitivity` is asked for what pairs tell and what they do
not, of a table where the prior errs by nearly as much as its tests let pass. Where a truth lies outside an interval
with probability `beta` at most, a test raises a false alarm with probability `ALARM` at most, by the exact binomial
law.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

import numpy as np
import pytest
from harness.answers import misses_shortened
from numpy.typing import NDArray
from scipy.stats import binom
from statistical.interval_cases import CELLS, EVEN_SUMS, OF_THREE
from statistical.tempting_statements import ALARM, BUDGET, PLAYED, SCHEMA, counts

from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import Share
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_single
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.released import ReleasedMeasurement
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import SESSION_MECHANISMS, may_start_from_measurement
from equipoise_server.mechanisms.residuals.measurement import measure
from equipoise_server.mechanisms.standing.family import planned_noise

TABLES: tuple[Statement, ...] = (Marginal(("a", "b")), Marginal(("c", "a")), Marginal(("b",)))
OF_PAIRS = ((attribute("a") == "0") & (attribute("b") == "0"), (attribute("b") == "1") & (attribute("c") == "0"))
MEASURED, HYPOTHESIS = AnswerMethod.MEASURED, AnswerMethod.HYPOTHESIS


@dataclass(frozen=True)
class Asked:
    """A session of one analyst: her budget, the table, int64[|X|], what she asks, and what answers her."""

    analysts: Budget
    schema: Schema
    histogram: NDArray[np.int64]
    statements: Sequence[Statement]
    options: Mapping[str, object]
    methods: frozenset[AnswerMethod]


CASES = {
    "online": Asked(Budget(math.inf, 0.0), SCHEMA, counts(), TABLES, {}, frozenset({MEASURED})),
    "online_private": Asked(Budget(1.0, 1e-6), SCHEMA, counts(), TABLES, {}, frozenset({MEASURED})),
    "low_sensitivity": Asked(
        Budget(1.0, 1e-6),
        OF_THREE,
        EVEN_SUMS,
        (*OF_PAIRS, *CELLS),
        {"sensitivity": "1/20000", "threshold": 0.13},
        frozenset({MEASURED, HYPOTHESIS}),
    ),
}


@cache
def noise(name: str) -> ResidualNoise:
    """Of a measurement of all pairs."""
    return planned_noise({"family": "pairs"}, CASES[name].schema, BUDGET)


def setting(name: str, number: int, beta: float) -> PublicParameters:
    """Of a session after a measurement of this number."""
    case = CASES[name]
    data = DenseCounts(case.histogram, case.schema.sizes)
    numbers = measure(data, noise(name), number.to_bytes(32, "big"), "measurement").to_bytes()
    named = ReleasedMeasurement("a" * 32, sha256(numbers).digest(), noise(name)).as_option()
    asked = [compile_single(each, case.schema) for each in case.statements]
    return PublicParameters(
        records=int(case.histogram.sum()),
        universe_size=case.schema.universe_size,
        shares=(Share("AA", len(asked), sum(each.query_count for each in asked)),),
        unit="query",
        data_budget=BUDGET,
        analyst_budget=case.analysts,
        beta=beta,
        options={"prior": "standing", "standing": named, "length": len(asked), **case.options},
        attributes=case.schema.sizes,
        measured=numbers,
    )


@cache
def told(name: str, beta: float) -> list[tuple[Answers, NDArray[np.float64]]]:
    """The answers of every session, and the truths. The plans differ in the name of the measurement only."""
    case, mechanism, played = CASES[name], SESSION_MECHANISMS[name], []
    asked = [compile_single(each, case.schema) for each in case.statements]
    truth = np.concatenate([each.counts(case.histogram) for each in asked]) / case.histogram.sum()
    data = DenseCounts(case.histogram, case.schema.sizes)
    for number in range(PLAYED):
        public = setting(name, number, beta)
        session = mechanism.start(public, mechanism.plan(public), data, number.to_bytes(32))
        answers = Answers.join(session.answer(slot, each) for slot, each in enumerate(asked))
        assert set(answers.methods.tolist()) == case.methods
        played.append((answers, truth))
    return played


def failures(name: str, beta: float, part: float = 1.0) -> int:
    """In how many sessions a truth lies outside an interval of which only so large a part is left."""
    return sum(bool(misses_shortened(answers, truth, part).any()) for answers, truth in told(name, beta))


def test_every_session_that_may_start_from_a_measurement_is_played() -> None:
    assert {name for name in SESSION_MECHANISMS if may_start_from_measurement(name)} == {*CASES}


@pytest.mark.nightly
@pytest.mark.parametrize("beta", [0.05, pytest.param(0.2, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", CASES)
def test_sessions_from_a_standing_measurement_fail_as_seldom_as_beta_says(name: str, beta: float) -> None:
    allowed = binom.isf(ALARM, PLAYED, beta)
    assert failures(name, beta) <= allowed < failures(name, beta, 2 / 3)
