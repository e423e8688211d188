"""The regret of both players, on the shipped integers, against random and adversarial gains.

Every sequence is fixed or follows from the player's own law of that round, which the theorems allow. Comparators
are the best of all allowed laws in hindsight and, for the data player, wider ones, against which it promises more.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from harness.exact_game import table_workload
from numpy.typing import NDArray

from equipoise.accounting import COEFFICIENT_BITS
from equipoise_server.game.data_player import MultiplicativeWeights
from equipoise_server.game.query_player import DenseMultiplicativeWeights, Units

NAT = 1 << 48
Law = NDArray[np.float64]
Gains = Callable[[int, Law], Law]

SIZE = 8
ROUNDS = 300


def random_gains(played: int, law: Law) -> Law:
    """Independent, in [0, 1]."""
    return np.random.default_rng(played).random(len(law))


def against_the_favourite(_: int, law: Law) -> Law:
    """The record that the player likes best gains nothing, all others one."""
    return np.where(np.arange(len(law)) == np.argmax(law), 0.0, 1.0)


def to_the_least_liked(_: int, law: Law) -> Law:
    return np.where(np.arange(len(law)) == np.argmin(law), 1.0, 0.0)


def one_record_only(_: int, law: Law) -> Law:
    return np.where(np.arange(len(law)) == 5, 1.0, 0.0)


def changing_sides(played: int, law: Law) -> Law:
    """One half gains for a while, then the other for longer, and so on."""
    side = math.floor(math.log2(played + 1)) % 2
    return np.where(np.arange(len(law)) % 2 == side, 1.0, 0.0)


SEQUENCES: list[Gains] = [
    random_gains,
    against_the_favourite,
    to_the_least_liked,
    one_record_only,
    changing_sides,
]


def law_of(player: MultiplicativeWeights) -> Law:
    exponents = player.exponents_at(np.arange(SIZE))
    weights = np.exp((exponents - exponents.max()) / NAT)
    return np.asarray(weights / weights.sum())


def data_regret(rate: float, drop_bits: int, gains: Gains, sign: int = 1) -> tuple[float, float]:
    """The largest excess over the bound of any comparator, and the largest regret as a part of its bound."""
    unit = 2**drop_bits * 2**10  # gains of 1 are this many units
    step = int(rate * NAT / 2**10)
    player = MultiplicativeWeights(table_workload([], SIZE), step, drop_bits)
    eta = step * 2**10 / NAT
    earned, total = 0.0, np.zeros(SIZE)
    for played in range(ROUNDS):
        law = law_of(player)
        units = np.rint(gains(played, law) * unit).astype(np.int64)
        earned += float(law @ (units / unit))
        total += units / unit
        player.gain(sign * units)
    fixed = eta * ROUNDS / 8 + (ROUNDS * step / NAT if drop_bits else 0)
    best_first = np.sort(total)[::-1]
    excess, used = -math.inf, 0.0
    for width in range(1, SIZE + 1):  # uniform over the best `width` records
        regret = float(best_first[:width].mean()) - earned
        bound = math.log(SIZE / width) / eta + fixed
        excess, used = max(excess, regret - bound), max(used, regret / bound)
    return excess, used


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("gains", SEQUENCES)
@pytest.mark.parametrize("rate", [0.02, math.sqrt(8 * math.log(SIZE) / ROUNDS), 1.0])
@pytest.mark.parametrize("drop_bits", [0, 16])
def test_multiplicative_weights_keep_their_regret(drop_bits: int, rate: float, gains: Gains) -> None:
    excess, _ = data_regret(rate, drop_bits, gains)
    assert excess <= 1e-9


def test_the_data_player_s_bound_is_nearly_reached() -> None:
    assert max(data_regret(0.02, 0, gains)[1] for gains in SEQUENCES) > 0.9


def test_a_data_player_that_does_not_learn_or_learns_the_wrong_way_is_caught() -> None:
    rate = math.sqrt(8 * math.log(SIZE) / ROUNDS)
    assert data_regret(rate, 0, one_record_only, sign=0)[0] > 0
    assert data_regret(rate, 0, one_record_only, sign=-1)[0] > 0


UNITS = Units(np.array([0, 1, 2, 5, 7]), padding=1)
QUERIES = 7
DENSITIES = (1.0, 2.5, 4.2)


def signed_random(played: int, law: Law) -> Law:
    return np.random.default_rng(played).random(len(law)) * 2 - 1


def against_the_lean(_: int, law: Law) -> Law:
    """Of each query and its complement, the one that holds more loses what the other gains."""
    return np.where(law >= 0, -1.0, 1.0)


def one_unit_only(_: int, law: Law) -> Law:
    return np.where(np.arange(len(law)) >= 5, -1.0, 0.0)


def all_for_complements(_: int, law: Law) -> Law:
    return np.full(len(law), -1.0)


def alternating(played: int, law: Law) -> Law:
    return np.full(len(law), 1.0 if played % 2 else -1.0)


QUERY_SEQUENCES: list[Gains] = [
    signed_random,
    against_the_lean,
    one_unit_only,
    all_for_complements,
    alternating,
    changing_sides,
]


def query_regret(rate: float, density: float, gains: Gains, sign: int = 1) -> tuple[float, float]:
    """As `data_regret`, for the projected player: the excess over the bound, and the part of it that is used.

    A law over the actions earns `<lean, gains>` with its lean, mass on a query less mass on its complement.
    """
    unit = 1 << 12
    step = int(rate * NAT / unit)
    player = DenseMultiplicativeWeights(UNITS, step, density)
    eta = step * unit / NAT
    earned, total = 0.0, np.zeros(QUERIES)
    for played in range(ROUNDS):
        lean = player.mixed_action() / 2.0**COEFFICIENT_BITS
        units = np.rint(gains(played, lean) * unit).astype(np.int64)
        earned += float(lean @ (units / unit))
        total += units / unit
        player.gain(sign * units)
    sizes = np.diff(UNITS.offsets)
    best_of_units = np.append(np.maximum.reduceat(np.abs(total), UNITS.offsets[:-1]), 0.0)  # padding earns nothing
    best, left = 0.0, 1.0
    for each in np.sort(best_of_units)[::-1].tolist():  # as much as is allowed on the best unit, then on the next
        best, left = best + each * min(left, 1 / density), left - min(left, 1 / density)
    bound = (math.log(UNITS.count / density) + math.log(2 * int(sizes.max()))) / eta + eta * ROUNDS / 2
    return best - earned - bound, (best - earned) / bound


@pytest.mark.sparse(8)
@pytest.mark.slow
@pytest.mark.thin(12)
@pytest.mark.parametrize("gains", QUERY_SEQUENCES)
@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.6])
def test_dense_multiplicative_weights_keep_their_regret(rate: float, density: float, gains: Gains) -> None:
    excess, _ = query_regret(rate, density, gains)
    assert excess <= 1e-9


@pytest.mark.nightly
@pytest.mark.slow
def test_the_query_player_s_bound_is_not_idle() -> None:
    assert max(query_regret(0.6, density, gains)[1] for density in DENSITIES for gains in QUERY_SEQUENCES) > 0.5
    assert max(query_regret(0.02, density, gains)[1] for density in DENSITIES for gains in QUERY_SEQUENCES) > 0.5


def test_a_query_player_that_does_not_learn_or_whose_sign_is_turned_is_caught() -> None:
    for sign in (0, -1):
        assert query_regret(0.1, 1.0, all_for_complements, sign)[0] > 0
