"""Intervals of rounds that start from a standing measurement hold for statements that its numbers suggested.

The numbers are public before statements are chosen. The analyst asks for what they show to be too high; she knows
the table's true shape, which is the worst that prior knowledge can be. Rounds in which a truth lies outside an
interval have probability `BETA` at most, so a test raises a false alarm with probability `ALARM` at most.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from statistical.tempting_statements import ALARM, PLAYED, RECORDS, SCHEMA, counts, measured, noise, tempting

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.workload_compiler import compile_workload
from equipoise.residuals.released import ReleasedMeasurement
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.equilibrium import prior_plan as of_equilibrium
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.multiplicative_weights import prior_plan as of_weights
from equipoise_server.mechanisms.registry import MECHANISMS
from equipoise_server.mechanisms.repair.final_tests import FinalTestParameters, plan_final_tests

BETA, PLAYED_TO_CATCH = 0.2, 60
# So small that the round's own tests say less than the measurement does, which then gives the intervals.
OWN = Budget(0.02, 1e-9)
NAMES = ("equilibrium", "multiplicative_weights")


def failures(name: str, played: int) -> int:
    """In how many rounds a truth lies outside an interval."""
    data, found = DenseCounts(counts(), SCHEMA.sizes), 0
    for number in range(played):
        numbers = measured(number).to_bytes()
        named = ReleasedMeasurement("a" * 32, sha256(numbers).digest(), noise()).as_option()
        asked = compile_workload(tempting(number), SCHEMA)
        setting = PublicParameters(
            RECORDS,
            data.universe_size,
            (Share("AA", asked.statement_count, asked.query_count),),
            "query",
            OWN,
            Budget(1.0, 1e-6),
            BETA,
            {"prior": "standing", "standing": named},
            SCHEMA.sizes,
        )
        plan = MECHANISMS[name].plan(setting)
        run = MECHANISMS[name].run(
            replace(setting, measured=numbers), plan, data, {"AA": asked}, number.to_bytes(32), lambda *_: None
        )
        answers = run.answers["AA"]
        assert answers.certified.any()
        found += bool(answers.misses(truths(asked.counts(counts()))).any())
    return found


def truths(counted: NDArray[np.int64]) -> NDArray[np.float64]:
    return counted / RECORDS


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_who_asks_for_what_she_has_seen_to_be_high_gets_intervals_that_hold(name: str) -> None:
    assert failures(name, PLAYED) <= binom.isf(ALARM, PLAYED, BETA)


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_intervals_for_statements_that_were_fixed_before_are_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A union bound over the declared queries, as of a measurement that is the round's own."""

    def declared(
        setting: PublicParameters,
        expected: float,
        rho: object,
        released: bool = False,  # noqa: ARG001
    ) -> FinalTestParameters:
        return plan_final_tests(setting, expected, rho)  # type: ignore[arg-type]

    for module in (of_equilibrium, of_weights):
        monkeypatch.setattr(module, "plan_final_tests", declared)
    assert failures(name, PLAYED_TO_CATCH) > binom.isf(ALARM, PLAYED_TO_CATCH, BETA)
