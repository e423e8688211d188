"""Private weights on one workload: fresh noise in every round, a mean of hypotheses, and what is proven of them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from harness.exact_game import masks_workload

from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.mechanisms.repair.private_weights import PrivateWeights, measurement_error, weights_error
from equipoise_server.mechanisms.repair.weights_hypothesis import Fit
from equipoise_server.randomness.stream import KeyedStream

ONE = 1 << GRID_BITS
RECORDS = 10**6
EVEN = np.full(4, RECORDS // 4, dtype=np.int64)
HALVES = masks_workload([0b0011], 4)


def told(weights: PrivateWeights) -> int:
    """The answer about half of an even table, from the even hypothesis, in units of 2^-40."""
    stream = KeyedStream.derive(bytes(32), "weights")
    return int(weights.answer(HALVES, HALVES.counts(EVEN), RECORDS, np.ones(4), stream)[0][0])


def test_a_statement_that_is_measured_again_has_fresh_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []
    monkeypatch.setattr(Fit, "measured", lambda _, query, answer: measured.append(answer))
    told(PrivateWeights(8, Fraction(1), Fraction(1, 1000), Fraction(1), ONE))
    assert len(set(measured)) == len(measured) == 8


@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 7])
def test_hypotheses_that_are_right_all_along_have_a_right_mean(rounds: int) -> None:
    weights = PrivateWeights(rounds, Fraction(1), Fraction(40), Fraction(1), ONE)
    assert abs(told(weights) - ONE // 2) < ONE / 10**5


@pytest.mark.parametrize("rounds", [1, 16, 500])
def test_the_noise_of_all_measurements_is_bounded_at_once(rounds: int) -> None:
    weights, chance = PrivateWeights(rounds, Fraction(1), Fraction(1, 10), Fraction(1), ONE), 1e-3
    bound = math.floor(measurement_error(weights, RECORDS, 4, chance) * RECORDS)
    decay = math.exp(-1 / 10)
    assert rounds * 2 * decay ** (bound + 1) / (1 + decay) <= chance


@pytest.mark.parametrize("rounds", [1, 64, 65])
def test_the_error_that_is_proven_has_every_selection_and_the_later_half_of_rounds(rounds: int) -> None:
    """Whichever of the queries is served worst, no selection of any round falls short of it by more."""
    weights, queries, chance = PrivateWeights(rounds, Fraction(1, 10), Fraction(40), Fraction(1), ONE), 100, 0.01
    later = len(range(rounds)[rounds // 2 :])
    distance = math.sqrt(4 * math.log(2 * 4) / later)
    shortfall = 2 / 0.1 * math.log(rounds * queries / (chance / 2)) / RECORDS
    assert weights_error(weights, RECORDS, 4, queries, chance) >= distance + shortfall
