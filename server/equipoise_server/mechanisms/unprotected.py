"""Choosing the game's parameters where nobody protects the analysts from one another.

Without the analysts' constraint the density is 1, the data player's rate is free, and in sampled play so are the
records: they are post-processing of the drawn actions. What is left to choose is how many actions are drawn
and how far each moves the data player. The proven bound is several times too pessimistic to choose by (its
second-order terms take every payoff for as large as payoffs can be), so sampled play is ranked by an expectation
with the same two regret terms and constants measured once, on marginals and on dense predicates. Promises never
rest on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from equipoise.accounting import RHO_UNIT
from equipoise_server.game.parameters import LARGEST_EXPONENT, GameParameters
from equipoise_server.mechanisms import tuning
from equipoise_server.mechanisms.interface import Setting
from equipoise_server.mechanisms.tuning import Size

ROUNDS = (16, 25, 40, 60, 100, 150, 200)
DRAWS = (1, 2, 4, 6, 8, 12, 16, 24, 32)
RECORDS = 1 << 16  # of the synopsis: so many that drawing them costs little beside what the game errs
MIXED_RATES = (0.25, 0.5, 1.0, 2.0, 4.0)

REGRET_PART = 1 / 3  # of either player's regret bound, as measured
STEP_COST = 1 / 80  # error for each nat by which one drawn action moves its records
ROUND_COST = 1 / 800  # and for each nat by which a whole round may: its actions are chosen at once
MOST_EXPONENT = LARGEST_EXPONENT * 0.999


def expected_error(game: GameParameters, size: Size) -> float:
    """The largest error that is expected of sampled play's synopsis, by a rule of thumb. Guarantees nothing."""
    step = game.data_rate / game.draws
    regrets = math.log(size.universe) / (game.data_rate * game.rounds)
    regrets += tuning.log_actions(game, size) / (game.query_rate(size.records) * game.rounds)
    return REGRET_PART * regrets + STEP_COST * step + ROUND_COST * game.data_rate


def sampled_candidates(setting: Setting, size: Size) -> Iterator[GameParameters]:
    """Sampled play with every number of draws, `eta_D` where its terms balance and `eta_Q` as the data allow."""
    for rounds in ROUNDS:
        for draws in DRAWS:
            game = GameParameters("sampled", rounds, math.ceil(RECORDS / rounds), draws, 1.0, 1, 1)
            cost_of_rate = STEP_COST / draws + ROUND_COST
            data_rate = math.sqrt(REGRET_PART * math.log(size.universe) / rounds / cost_of_rate)
            yield tuning.within_data_budget(game, setting, size, MOST_EXPONENT / rounds, data_rate)


def mixed_candidates(setting: Setting, size: Size) -> Iterator[GameParameters]:
    """Mixed play: here records cost the data, so their number is searched as well."""
    for rounds in tuning.ROUNDS:
        for batch in tuning.BATCHES:
            game = GameParameters("mixed", rounds, batch, 1, 1.0, 1, 1)
            balanced = math.sqrt(2 * tuning.log_actions(game, size) / rounds)
            for data_rate in MIXED_RATES:
                query_rate = min(balanced, MOST_EXPONENT / rounds)
                yield tuning.within_data_budget(game, setting, size, query_rate, data_rate)


def choose_unprotected_game(setting: Setting) -> GameParameters | None:
    """The game expected to err least within the data's budget; sampled play unless mixed play is asked for."""
    size, budget = Size.of(setting), tuning.game_share(setting) * tuning.usable_rho(setting.data_budget)
    mixed = setting.options.get("play") == "mixed"
    found = mixed_candidates(setting, size) if mixed else sampled_candidates(setting, size)
    playable = [
        game
        for game in found
        if min(game.query_step, game.data_step) > 0
        and game.problem(size.records, size.units) is None
        and tuning.data_rho(game, size) * RHO_UNIT <= budget
    ]

    def rank(game: GameParameters) -> float:
        if mixed:
            beta = setting.beta / 4
            return tuning.game_bound(game, size, beta) + tuning.sampling_error(game, size, beta)
        return expected_error(game, size)

    return min(playable, key=rank, default=None)
