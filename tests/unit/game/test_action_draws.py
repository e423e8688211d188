"""The query player's draws: every action's own points, and nothing else."""

from __future__ import annotations

import itertools

import numpy as np
from harness.random_references import ScriptedStream

from equipoise_server.game.query_player import DenseMultiplicativeWeights, Units, action_weights, unit_weights
from equipoise_server.randomness.stream import KeyedStream

ONE = 1 << 48  # an exponent of 1


def test_actions_are_drawn_at_the_points_that_their_weights_cut() -> None:
    """The first and the last point of every action, in units of one query, of three, and a padding unit."""
    units = Units(np.array([0, 1, 4, 5]), padding=2)
    player = DenseMultiplicativeWeights(units, ONE, 2.0)
    player.gain(np.array([3, -1, 0, 2, -40]))
    weights = player.weights()
    unit_ends = list(itertools.accumulate(unit_weights(weights, 2.0).tolist()))
    points, inside_points, expected = [], [], []
    for unit, (start, end) in enumerate(itertools.pairwise([0, *unit_ends])):
        if unit >= 3:
            points += [start, end - 1]  # padding: no action comes of these
            continue
        first, size = int(units.offsets[unit]), int(units.offsets[unit + 1] - units.offsets[unit])
        ends = list(itertools.accumulate(action_weights(weights, units, np.array([unit])).tolist()))
        for action, (low, high) in enumerate(itertools.pairwise([0, *ends])):
            points += [start, end - 1]
            inside_points += [low, high - 1]
            expected += [(first + action % size, 1 if action < size else -1)] * 2
    queries, signs = player.draw(len(points), ScriptedStream(points + inside_points))
    assert list(zip(queries.tolist(), signs.tolist(), strict=True)) == expected


def test_many_large_units_are_drawn_from_though_their_weights_pass_64_bits_together() -> None:
    units = Units(np.arange(0, 41, 2), padding=0)
    player = DenseMultiplicativeWeights(units, ONE, 20 / 1.5)
    player.gain(np.tile([9, -9], 20))
    queries, signs = player.draw(4000, KeyedStream.derive(bytes(32), "many units"))
    assert set(queries.tolist()) == set(range(40))
    assert np.mean(signs == np.where(queries % 2 == 0, 1, -1)) > 0.999


def test_nothing_is_drawn_where_all_units_are_padding() -> None:
    player = DenseMultiplicativeWeights(Units(np.zeros(1, dtype=np.int64), padding=3), ONE, 2.0)
    queries, signs = player.draw(5, KeyedStream.derive(bytes(32), "padding"))
    assert (queries.tolist(), signs.tolist()) == ([], [])
