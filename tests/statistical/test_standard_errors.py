"""Values are unbiased and standard errors true, over 1,000 runs of each mechanism whose noise is all its error.

In each cell, the mean of `(value - truth) / standard error` over the runs has a standard deviation of 1 /
sqrt(1,000), and the mean of its square that of `sqrt((kurtosis - 1) / 1,000)`: 2 for Gaussian noise, 5 for Laplace
noise. Both are compared at 6 standard deviations. A normal law is beyond them with probability 2e-9; of 25 means
and 25 squares of five mechanisms together with probability 5e-7. The law of a mean of 1,000 squares of Laplace
noise is skewed, and allowed 9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.accounting import RHO_UNIT
from equipoise.model.accounts import Budget
from equipoise.model.grants import ANALYSTS
from equipoise.model.results import Answers
from equipoise.model.rounds import STANDING_OPTION, Share
from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.fixed_point import ONE
from equipoise.queries.meanings import meaning_of
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_single, compile_workload
from equipoise.residuals.reach import log_chance
from equipoise.residuals.released import ReleasedMeasurement
from equipoise.residuals.told_counts import StandingNoise
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.grant.mechanism import GrantMechanism
from equipoise_server.mechanisms.grant.plan import plan_grant
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.persons import planned_starts
from equipoise_server.mechanisms.registry import mechanism
from equipoise_server.mechanisms.residuals.measurement import measure
from equipoise_server.mechanisms.standing.answering import answers_of
from equipoise_server.mechanisms.standing.family import planned_noise

RUNS, BEYOND = 1_000, 6.0
SCHEMA = Schema.from_json('{"a": 6, "b": 4}')
TABLE = Marginal(("a", "b"))
COUNTS = np.array([900, 60, 30, 10, *[0] * 20])  # mostly empty: cutting at 0 would show
RECORDS = int(COUNTS.sum())
DATA = DenseCounts(COUNTS, (6, 4))
SETTING = PublicParameters(
    RECORDS, 24, (Share("ann", 1, 24, 2),), "query", Budget(1.0, 1e-6), Budget(1.0, 1e-6), 0.05, {}, (6, 4)
)
WORKLOAD = compile_workload([TABLE], SCHEMA)
Run = Callable[[bytes], Answers]


def by_round(name: str) -> Run:
    planned = mechanism(name).plan(SETTING)

    def run(seed: bytes) -> Answers:
        outcome = mechanism(name).run(SETTING, planned, DATA, {"ann": WORKLOAD}, seed, lambda *_: None)
        return outcome.answers["ann"]

    return run


def by_measurement() -> Run:
    noise = planned_noise({}, SCHEMA, SETTING.data_budget)
    return lambda seed: answers_of(WORKLOAD, measure(DATA, noise, seed, "measurement"), log_chance(0.05))


def by_grant() -> Run:
    granted = GrantMechanism()
    setting = replace(SETTING, analyst_budget=ANALYSTS, shares=(Share("ann", 1, 24),), options={"length": 1})
    planned = planned_starts(granted, setting)[0].plan
    asked = compile_single(TABLE, SCHEMA)
    return lambda seed: granted.start(setting, planned, DATA, seed).answer(0, asked, b"it", RHO_UNIT // 100)


def by_grant_and_measurement() -> Run:
    """Of a measurement and noise that was paid for, which have about the same variances."""
    granted, noise = GrantMechanism(), planned_noise({}, SCHEMA, SETTING.data_budget)
    asked = compile_single(TABLE, SCHEMA)
    assert isinstance(asked, CompiledWorkload)
    told = StandingNoise(noise, 1).tells(asked, meaning_of(asked, b"it"))
    assert told is not None
    wanted = int(4 * min(told.precisions))

    def run(seed: bytes) -> Answers:
        numbers = measure(DATA, noise, seed, "measurement").to_bytes()
        named = ReleasedMeasurement("r", sha256(numbers).digest(), noise)
        setting = replace(
            SETTING,
            analyst_budget=ANALYSTS,
            shares=(Share("ann", 1, 24),),
            options={"length": 1, STANDING_OPTION: named.as_option()},
            measured=numbers,
            data_budget=Budget(8.0, 1e-6),
        )
        planned = plan_grant(granted.name, setting)
        return granted.start(setting, planned, DATA, seed).answer(0, asked, b"it", wanted)

    return run


MADE: dict[str, tuple[Callable[[], Run], float, float]] = {  # with the kurtosis of its noise
    "laplace": (lambda: by_round("laplace"), 6.0, 9.0),
    "gaussian": (lambda: by_round("gaussian"), 3.0, BEYOND),
    "standing": (by_measurement, 3.0, BEYOND),
    "grant": (by_grant, 3.0, BEYOND),
    "grant, with a measurement": (by_grant_and_measurement, 3.0, BEYOND),
}


def errors_of(run: Run) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Every run's errors of all cells and of their sum, and the standard errors, as fractions: [runs, 25], [24]."""
    truth, errors = COUNTS / RECORDS, []
    for number in range(RUNS):
        answers = run(sha256(number.to_bytes(4)).digest())
        error = answers.values / ONE - truth
        errors.append(np.append(error, error.sum()))
    return np.array(errors), answers.standard_errors / ONE


@pytest.mark.sparse(8)
@pytest.mark.full
@pytest.mark.parametrize("name", MADE)
def test_values_are_unbiased_and_their_standard_errors_true(name: str) -> None:
    make, kurtosis, beyond = MADE[name]
    errors, told = errors_of(make())
    means = errors[:, :-1].mean(axis=0) / told * RUNS**0.5
    assert np.abs(means).max() < BEYOND
    squares = ((errors[:, :-1] / told) ** 2).mean(axis=0)
    assert np.abs(squares - 1).max() < beyond * ((kurtosis - 1) / RUNS) ** 0.5
    # The sum of all cells is unbiased, too, which cut values are not: those would add 20 empty cells' noise.
    whole = errors[:, -1]
    assert abs(whole.mean()) < BEYOND * max(whole.std(), 1 / ONE) / RUNS**0.5 + 24 / ONE
    cut = np.maximum(errors[:, :-1] + COUNTS / RECORDS, 0).sum(axis=1) - 1
    assert cut.mean() > 6 * whole.std() / RUNS**0.5
