"""Intervals of sessions and rounds that start from a standing measurement: how many hold, and that they are tight.

Each test plays `PLAYED` measurements of the table of `tempting_statements`, and asks for all cells of some tables.
Where a truth lies outside an interval with probability `beta` at most, a test raises a false alarm with probability
`ALARM` at most, by the exact binomial law.
"""

from __future__ import annotations

import math
from functools import cache
from hashlib import sha256

import numpy as np
import pytest
from harness.answers import misses_shortened
from numpy.typing import NDArray
from scipy.stats import binom
from statistical.tempting_statements import ALARM, BUDGET, PLAYED, RECORDS, SCHEMA, counts, measured, noise

from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import Share
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_single
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import SESSION_MECHANISMS, may_start_from_measurement
from equipoise_server.mechanisms.standing.released import ReleasedMeasurement

ANALYSTS = {"online": Budget(math.inf, 0.0), "online_private": Budget(1.0, 1e-6)}
ASKED = [compile_single(Marginal(axes), SCHEMA) for axes in (("a", "b"), ("c", "a"), ("b",))]


def setting(name: str, number: int, beta: float) -> PublicParameters:
    """Of a session after a measurement of this number."""
    numbers = measured(number).to_bytes()
    named = ReleasedMeasurement("a" * 32, sha256(numbers).digest(), noise()).as_option()
    return PublicParameters(
        records=RECORDS,
        universe_size=SCHEMA.universe_size,
        shares=(Share("AA", len(ASKED), sum(each.query_count for each in ASKED)),),
        unit="query",
        data_budget=BUDGET,
        analyst_budget=ANALYSTS[name],
        beta=beta,
        options={"prior": "standing", "standing": named, "length": len(ASKED)},
        attributes=SCHEMA.sizes,
        measured=numbers,
    )


@cache
def told(name: str, beta: float) -> list[tuple[Answers, NDArray[np.float64]]]:
    """The answers of every session, and the truths. The plans differ in the name of the measurement only."""
    mechanism, data, played = SESSION_MECHANISMS[name], DenseCounts(counts(), SCHEMA.sizes), []
    truth = np.concatenate([each.counts(counts()) for each in ASKED]) / RECORDS
    for number in range(PLAYED):
        public = setting(name, number, beta)
        session = mechanism.start(public, mechanism.plan(public), data, number.to_bytes(32))
        answers = Answers.join(session.answer(slot, each) for slot, each in enumerate(ASKED))
        assert set(answers.methods.tolist()) == {AnswerMethod.MEASURED}
        played.append((answers, truth))
    return played


def failures(name: str, beta: float, part: float = 1.0) -> int:
    """In how many sessions a truth lies outside an interval of which only so large a part is left."""
    return sum(bool(misses_shortened(answers, truth, part).any()) for answers, truth in told(name, beta))


def test_every_session_that_answers_marginals_from_a_measurement_is_played() -> None:
    """`low_sensitivity` answers no marginals; `played_intervals` plays it from a prior of its own."""
    may = {name for name in SESSION_MECHANISMS if may_start_from_measurement(name)}
    assert may == {*ANALYSTS, "low_sensitivity"}


@pytest.mark.thin(2)
@pytest.mark.parametrize("beta", [0.05, 0.2])
@pytest.mark.parametrize("name", ANALYSTS)
def test_sessions_from_a_standing_measurement_fail_as_seldom_as_beta_says(name: str, beta: float) -> None:
    allowed = binom.isf(ALARM, PLAYED, beta)
    assert failures(name, beta) <= allowed < failures(name, beta, 2 / 3)
