"""Whole games, really played, against the enumerated law of what they release.

The enumerations of privacy rest on that law: were the play to differ from it, they would prove nothing. Seeds are
fixed; over random ones all comparisons together raise a false alarm with probability at most 10^-6.
"""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from harness.exact_game import game_of, released_law, table_workload
from statistical.binomial_bins import deviates
from statistical.extreme_games import parameters

from equipoise_server.game import equilibrium
from equipoise_server.game.equilibrium import Game
from equipoise_server.game.parameters import GameParameters
from equipoise_server.randomness.stream import KeyedStream

FALSE_ALARM = 1e-6
COMPARISONS = 2
PLAYS = 2000
DATA = np.array([2, 0, 1], dtype=np.int64)
MIXED = parameters("mixed", 3, 1, 1, 1.5, 3.0, 2.0, 3)
SAMPLED = parameters("sampled", 3, 1, 2, 1.5, 3.0, 2.0, 3)


def game_with(chosen: GameParameters) -> Game:
    """A table and two predicates, with one empty place."""
    return game_of(chosen, table_workload([3, 6], 3), DATA, padding=1)


def is_rejected(game: Game, law_of: Game, lifetime: int) -> bool:
    """Whether what `game` releases deviates from `law_of`'s law; `lifetime`: of the tables of proposals."""
    law = released_law(law_of, 3)
    places = {released: place for place, released in enumerate(law)}
    counts = np.zeros(len(law), dtype=np.int64)
    with mock.patch.object(equilibrium, "table_lifetime", return_value=lifetime):
        for play in range(PLAYS):
            records, actions = (KeyedStream.derive(bytes(32), each, str(play)) for each in ("records", "actions"))
            counts[places[tuple(game.play(records, actions, lambda done, total: None).tolist())]] += 1
    return deviates(counts, np.array(list(law.values())), FALSE_ALARM / COMPARISONS)


@pytest.mark.sparse(2)
@pytest.mark.full
@pytest.mark.parametrize(("chosen", "lifetime"), [(MIXED, 1), (SAMPLED, 3)])
def test_games_release_what_is_enumerated(chosen: GameParameters, lifetime: int) -> None:
    assert not is_rejected(game_with(chosen), game_with(chosen), lifetime)


@pytest.mark.full  # the quick tier compares the law itself
def test_a_data_player_that_learns_too_slowly_would_be_seen() -> None:
    slow = replace(SAMPLED, data_step=SAMPLED.data_step // 4)
    assert is_rejected(game_with(slow), game_with(SAMPLED), 3)
