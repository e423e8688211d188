"""A game that starts from a public distribution leaks no more than its charge, by exact enumeration.

The charges never used the starting point. A start that is not public must exceed them: one that depends on the data
and is not charged, and one that depends on a workload.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness.exact_game import Law, game_of, hockey_stick, masks_workload, released_law
from numpy.typing import NDArray
from statistical.extreme_games import EPSILONS, ORDERS, ROUNDING, both_ways, instances, parameters, size_of

from equipoise_server.conversion import delta_of_rho, mixture_delta
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.equilibrium.cost_model import analyst_mixture, analyst_rho, data_rho

MIXED = parameters("mixed", 4, 1, 1, 1.5, 3.0, 1.5, 3)
SAMPLED = parameters("sampled", 3, 1, 2, 1.5, 2.0, 1.5, 3)
STARTS = ((0, -(2 << 48), -(1 << 48)), (0, 0, -(30 << 48)), (-(5 << 44), 0, 0))


def law_of(game: GameParameters, masks: list[int], data: NDArray[np.int64], start: NDArray[np.int64]) -> Law:
    """The law of the released records of a game with this start."""
    return released_law(replace(game_of(game, masks_workload(masks, 3), data), start=start), 3)


@pytest.mark.thin(6)
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("game", [MIXED, SAMPLED])
def test_data_neighbours_leak_at_most_the_charge(game: GameParameters, start: tuple[int, ...]) -> None:
    rho, first = data_rho(game, size_of(3, 3, 3)), np.array(start, dtype=np.int64)
    worst = 0.0
    for data, other, masks, _ in instances(4, seed=1):
        law, near = (law_of(game, masks, each, first) for each in (data, other))
        for order in ORDERS:
            leaked = both_ways(law, near, order)
            assert leaked <= order * rho + ROUNDING
            worst = max(worst, leaked / (order * rho))
        for epsilon in EPSILONS:
            assert hockey_stick(law, near, epsilon) <= delta_of_rho(rho, epsilon) + ROUNDING
    assert worst > 0


@pytest.mark.thin(4)
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("game", [MIXED, SAMPLED])
def test_workload_neighbours_leak_at_most_the_charge(game: GameParameters, start: tuple[int, ...]) -> None:
    size, first = size_of(3, 3, 3), np.array(start, dtype=np.int64)
    for data, _, masks, changed in instances(4, seed=2):
        law, near = (law_of(game, each, data, first) for each in (masks, changed))
        for epsilon in EPSILONS:
            charged = (
                delta_of_rho(analyst_rho(game, size), epsilon)
                if game.play == "mixed"
                else mixture_delta(analyst_mixture(game, size), epsilon)
            )
            assert hockey_stick(law, near, epsilon) <= charged + ROUNDING


@pytest.mark.parametrize("game", [MIXED, SAMPLED])
def test_the_start_moves_what_is_drawn(game: GameParameters) -> None:
    """A start that nothing uses would pass all other tests."""
    first = np.array(STARTS[1], dtype=np.int64)
    data, _, masks, _ = instances(1, seed=1)[0]
    assert hockey_stick(law_of(game, masks, data, first), law_of(game, masks, data, first * 0), 0.1) > 0.1


@pytest.mark.parametrize("game", [MIXED, SAMPLED])
def test_a_start_from_the_data_that_is_not_charged_is_caught(game: GameParameters) -> None:
    rho = data_rho(game, size_of(3, 3, 3))
    caught = False
    for data, other, masks, _ in instances(4, seed=1):
        law, near = (law_of(game, masks, each, each << 50) for each in (data, other))
        caught |= any(both_ways(law, near, order) > order * rho + ROUNDING for order in ORDERS)
    assert caught


def test_a_start_that_depends_on_a_workload_is_caught() -> None:
    slow = replace(MIXED, data_step=MIXED.data_step // 64)  # so that the analysts are charged little
    size, caught = size_of(3, 3, 3), False
    for data, _, masks, changed in instances(4, seed=2):
        starts = (masks_workload(each, 3).transpose(np.ones(3, np.int64)) << 50 for each in (masks, changed))
        law, near = (law_of(slow, each, data, first) for each, first in zip((masks, changed), starts, strict=True))
        caught |= any(
            hockey_stick(law, near, epsilon) > delta_of_rho(analyst_rho(slow, size), epsilon) + ROUNDING
            for epsilon in EPSILONS
        )
    assert caught
