"""Forecasts of a game: its expected error by a rule of thumb, its running time and its memory.

Whatever the number of rounds, both players' costs and errors depend on totals: the records and the actions drawn in
all, and how far either player's exponents may travel in all (`eta T`). The proven bound is several times too
pessimistic to choose by, so plans are ranked by the expectation below. No promise rests on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.equilibrium.cost_model import Size

Numbers = NDArray[np.float64]

NORM = 1.7  # in which parts of the expected error add up
UNIFORM_ERROR = 0.6  # of the uniform guess at its worst, on queries that cover a good part of the universe
# What the search weighs games by: several times what they take now, so that time is rather saved than spent.
CELL_SECONDS = 1.2e-7  # a round, for each record that can exist
QUERY_SECONDS = 1e-7  # a round, for each query; three times as much in mixed play
DRAW_SECONDS = 6e-5  # for each action drawn
RECORD_SECONDS = 1e-9  # of counting one drawn record, for each query
# What a plan tells: processor seconds measured on one ordinary core, good to a factor of 3.
RUN_START_SECONDS, RUN_ROUND_SECONDS = 0.05, 5e-4
RUN_QUERY_SECONDS = 1.2e-7  # a round
RUN_CELL_SECONDS = {"mixed": 1.7e-8, "sampled": 6e-9}  # a round; sampled play does not visit all cells
RUN_DRAW_SECONDS = 1.5e-6
HALF_TRAVEL = 33.0  # of the query player, in units of the logarithm of its actions


@dataclass(frozen=True)
class Sketch:
    """Games by their totals over all rounds, one each place: float64 arrays that broadcast together.

    `records` and `actions` drawn (infinitely many actions in mixed play), `density`, and `data_travel` and
    `query_travel`: learning rate times rounds of either player.
    """

    records: Numbers
    actions: Numbers
    density: Numbers
    data_travel: Numbers
    query_travel: Numbers

    @staticmethod
    def of(game: GameParameters, size: Size) -> Sketch:
        """Return the totals of one game."""
        actions = math.inf if game.play == "mixed" else game.rounds * game.draws
        totals = (
            game.rounds * game.batch,
            actions,
            game.density,
            game.data_rate * game.rounds,
            game.query_rate(size.records) * game.rounds,
        )
        return Sketch(*(np.array([total], dtype=np.float64) for total in totals))

    def at(self, place: int) -> Sketch:
        """Return the game at one place of the flattened arrays."""
        fields = np.broadcast_arrays(self.records, self.actions, self.density, self.data_travel, self.query_travel)
        return Sketch(*(np.array([field.ravel()[place]]) for field in fields))


@dataclass(frozen=True)
class Expected:
    """What a game is expected to err by at most: `unlearnt` of what its start errs by, and `noise` of its draws."""

    unlearnt: Numbers
    noise: Numbers


def expected_error(sketch: Sketch, size: Size) -> Numbers:
    """Return the largest error of the synopsis that is expected from the uniform start."""
    parts = expected_parts(sketch, size, UNIFORM_ERROR)
    together = (parts.unlearnt**NORM + parts.noise**NORM) ** (1 / NORM)
    return np.asarray(np.minimum(1.0, together))


def expected_parts(sketch: Sketch, size: Size, start: float) -> Expected:
    """Return both parts of the largest error that is expected, by a rule of thumb with constants measured once.

    `start`: the largest error of what the game starts from.

    The synopsis starts at the uniform guess and leaves it as the data player's exponents travel: what matters is
    that travel in parts of `log |X|`, less what is wasted while the query player's exponents are too small to tell
    queries apart (their travel in parts of `log(2 actions)`), and less what a large density spreads over queries
    already served well. Drawn records and actions add noise; a game that learns corrects a part of it. Fitted to
    1,108 games on four small tables with dense predicates, and checked on 276 on two larger ones: there it is 3 %
    low on average, and within a factor of 1.2 for 60 % of the games, 1.5 for nearly all.
    """
    part = sketch.density / size.units
    travel = (sketch.query_travel * math.log(2) / math.log(2 * size.queries / size.units)) ** 1.2
    telling = travel / (travel + HALF_TRAVEL**1.2)
    focus = (1 - 0.38 * part) * part**-0.08
    reach = 0.57 * sketch.data_travel / math.log(max(2, size.universe)) * focus * telling
    unlearnt = start / (1 + reach**1.06)
    largest = math.sqrt(math.log(2 * size.queries))
    independent = 0.57 * largest * sketch.records**-0.5
    corrected = np.minimum(independent, 0.22 * largest * sketch.records**-0.41)
    records = corrected + (independent - corrected) / (1 + reach)
    draws = 0.88 * sketch.data_travel**0.4 * sketch.actions**-0.48 * np.maximum(sketch.query_travel, 1e-9) ** -0.38
    return Expected(np.asarray(unlearnt), np.asarray((records**NORM + draws**NORM) ** (1 / NORM)))


def expected_game_error(game: GameParameters, size: Size) -> float:
    """Return the same for one game."""
    return float(expected_error(Sketch.of(game, size), size)[0])


def round_seconds(size: Size, *, mixed: bool) -> float:
    """Return one round on one ordinary core, without what grows with the records and actions drawn."""
    return CELL_SECONDS * size.universe + (3 if mixed else 1) * QUERY_SECONDS * size.queries + 2e-3


def sketch_seconds(sketch: Sketch, size: Size, rounds: float | Numbers, *, mixed: bool) -> Numbers:
    """Return the whole game over so many rounds.

    Args:
        sketch: of the game.
        size: of the round.
        rounds: of the game; one number, or one for each sketch.
        mixed: whether the data player answers with its whole distribution, drawing nothing.
    """
    drawn = 0.0 if mixed else DRAW_SECONDS * sketch.actions
    counted = RECORD_SECONDS * size.queries * sketch.records
    return np.asarray(rounds * round_seconds(size, mixed=mixed) + drawn + counted)


def predicted_seconds(game: GameParameters, size: Size) -> float:
    """What the game and the counting of its answers take: measured over 4,096 to a million cells in both plays."""
    seconds = RUN_ROUND_SECONDS + RUN_CELL_SECONDS[game.play] * size.universe + RUN_QUERY_SECONDS * size.queries
    drawn = RUN_DRAW_SECONDS * game.rounds * game.draws if game.play == "sampled" else 0.0
    counted = RECORD_SECONDS * size.queries * game.rounds * game.batch
    return RUN_START_SECONDS + game.rounds * seconds + drawn + counted


def predicted_memory(size: Size) -> int:
    """Return a rough prediction of the peak, in bytes."""
    return 300 * 2**20 + 8 * (6 * size.universe + 40 * size.queries)
