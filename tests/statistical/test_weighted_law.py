"""Draws from exp(phi) against their laws, with a stated chance of a false alarm.

The exact law of the accept step is enumerated in the unit tests; here the whole sampler is run, so that an error in
proposing, in reading the stream or in the loop would show. The seeds are fixed; over random ones, all comparisons
together raise a false alarm with probability at most 10^-6, divided evenly over them.
"""

from __future__ import annotations

import numpy as np
import pytest
from harness.exact_game import masks_workload
from numpy.typing import NDArray
from statistical.binomial_bins import deviates

from equipoise_server.game.data_player import MultiplicativeWeights
from equipoise_server.game.query_player import DenseMultiplicativeWeights, Units, action_weights, unit_weights
from equipoise_server.randomness.stream import KeyedStream
from equipoise_server.randomness.weighted import draw_exponential

FALSE_ALARM = 1e-6
COMPARISONS = 9  # four laws, small calls, permutations, old proposals, actions
DRAWS = 60_000
UNIT = 1 << 48


def is_rejected(drawn: NDArray[np.int64], law: NDArray[np.float64]) -> bool:
    """Whether the draws deviate from the law, cell by cell."""
    return deviates(np.bincount(drawn, minlength=len(law)), law, FALSE_ALARM / COMPARISONS)


def exponents_of(law: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.round(np.log(law) * UNIT).astype(np.int64)


LAWS = {
    "zipf": 1 / np.arange(1.0, 41.0),
    "flat": np.ones(300),
    "one heavy, many light": np.append(np.full(20_000, 1e-6), 1.0),
    "far cells": np.append(np.exp(-np.arange(8.0)), np.exp(-np.arange(50.0, 90.0))),
}


@pytest.mark.parametrize("name", LAWS)
def test_exponential_draws_follow_the_law(name: str) -> None:
    law = LAWS[name] / LAWS[name].sum()
    drawn = draw_exponential(exponents_of(law), DRAWS, KeyedStream.derive(b"\x06" * 32, "law", name))
    assert not is_rejected(drawn, law)


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_a_wrong_learning_rate_is_rejected(factor: float) -> None:
    law = LAWS["zipf"] / LAWS["zipf"].sum()
    exponents = (exponents_of(law) * factor).astype(np.int64)
    drawn = draw_exponential(exponents, DRAWS, KeyedStream.derive(b"\x06" * 32, "wrong"))
    assert is_rejected(drawn, law)


def test_many_small_calls_follow_the_law_too() -> None:
    law = LAWS["zipf"] / LAWS["zipf"].sum()
    stream = KeyedStream.derive(b"\x06" * 32, "small calls")
    drawn = np.concatenate([draw_exponential(exponents_of(law), 3, stream) for _ in range(4000)])
    assert not is_rejected(drawn, law)


def drawn_after(lifetime: int, forgotten: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Records drawn from one player through a table of some age, and the law that they should have."""
    masks = [0b1011001110, 0b0100110001, 0b1111000000, 0b0000011111]
    workload = masks_workload(masks, 10)
    player = MultiplicativeWeights(workload, UNIT // 4, lifetime=lifetime)
    potential = np.zeros(10)
    stream = KeyedStream.derive(b"\x06" * 32, "old table", str(lifetime))
    choose = np.random.default_rng(5)
    for played in range(12):
        player.draw(1, stream)
        queries, signs = choose.integers(0, 4, 3), choose.choice([-1, 1], 3)
        potential += workload.transpose_sparse(queries, signs)
        if played >= forgotten:
            player.gain_queries(queries, signs)
    law = np.exp(potential / 4)
    return np.concatenate([player.draw(DRAWS // 20, stream) for _ in range(20)]), law / law.sum()


@pytest.mark.thin(3)
@pytest.mark.parametrize("lifetime", [5, 1000])
def test_draws_through_an_old_table_follow_the_law_of_now(lifetime: int) -> None:
    assert not is_rejected(*drawn_after(lifetime))
    assert is_rejected(*drawn_after(lifetime, forgotten=1))


def test_drawn_actions_follow_the_query_player_s_weights() -> None:
    units = Units(np.array([0, 1, 4, 5]), padding=1)
    player = DenseMultiplicativeWeights(units, UNIT // 4, 1.5)
    player.gain(np.array([3, -1, 0, 2, -5]))
    queries, signs = player.draw(DRAWS, KeyedStream.derive(b"\x06" * 32, "actions"))
    chosen, weights = unit_weights(player.weights(), 1.5), player.weights()
    law = np.zeros((2, 5))
    for unit in range(3):
        inside = action_weights(weights, units, np.array([unit])) * 1.0
        part = slice(units.offsets[unit], units.offsets[unit + 1])
        law[:, part] = inside.reshape(2, -1) / inside.sum() * chosen[unit] / chosen.sum()
    padding = np.full(DRAWS - len(queries), 10)
    drawn = np.concatenate([queries + np.where(signs > 0, 0, 5), padding])
    assert not is_rejected(drawn, np.append(law.ravel(), 1 - law.sum()))
    assert is_rejected(drawn, np.append(law[::-1].ravel(), 1 - law.sum()))


def test_permutations_are_uniform() -> None:
    stream = KeyedStream.derive(b"\x06" * 32, "permutations")
    codes = [int("".join(map(str, stream.permutation(4).tolist())), 4) for _ in range(12_000)]
    _, places = np.unique(np.array(codes), return_inverse=True)
    assert not is_rejected(places, np.full(24, 1 / 24))
    # A shuffle that never leaves an element in place (Sattolo's) has 6 of the 24 orders only.
    assert is_rejected(np.repeat(np.arange(6), 2000), np.full(24, 1 / 24))
