"""Either play draws its first records from the public weights that the game starts from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness.exact_game import game_of, masks_workload

from equipoise_server.game.parameters import GameParameters, Play
from equipoise_server.randomness.stream import KeyedStream

ONE = 1 << 48  # an exponent of 1


@pytest.mark.parametrize("play", ["mixed", "sampled"])
def test_what_a_game_starts_from_is_what_its_records_are_drawn_from(play: Play) -> None:
    """All but one of 10^17 draws are of the one record that has a start of 40 nats."""
    parameters = GameParameters(play, rounds=2, batch=50, draws=3, density=1.5, query_step=1, data_step=1)
    game = game_of(parameters, masks_workload([1, 6], 3), np.array([5, 3, 2]))
    streams = [KeyedStream.derive(bytes(32), name) for name in ("records", "actions", "other", "more")]
    started = replace(game, start=np.array([0, 40 * ONE, 0]))
    assert started.play(streams[0], streams[1], lambda *_: None).tolist() == [1] * 100
    assert set(game.play(streams[2], streams[3], lambda *_: None).tolist()) == {0, 1, 2}
