"""The costs and error bounds of a game, as functions of its public parameters and of a setting's public numbers.

The proven error of a game is HRU's regret argument with exact constants (mechanisms section 2): fewer than `s`
units have a query whose synopsis error exceeds

    log|X| / (eta_D T) + L / (eta_Q T) + eta_Q / 2 + sampling       (+ 3 eta_D / 8 + sqrt(2 ln(1/beta) / ((T-1) M)))

with `L = log(G/s) + log(actions of the largest unit)`; the bracket only in sampled play. `selection` chooses the
parameters, and `equipoise.accounting` computes every cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from equipoise import accounting
from equipoise.accounting import RHO_UNIT
from equipoise_server.conversion import mixture_delta
from equipoise_server.game.parameters import EXPONENT_BITS, GameParameters
from equipoise_server.mechanisms.budget_rounding import usable_delta, usable_rho
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.prior.support import support_size


@dataclass(frozen=True)
class Size:
    """The public numbers of a setting on which the game depends."""

    records: int
    universe: int  # records over which weights are kept: all that can exist, or those of a support
    units: int
    queries: int
    largest_unit: int  # queries of the largest unit, at most

    @staticmethod
    def of(setting: PublicParameters) -> Size:
        """The numbers of a setting: a unit is a statement, all that one analyst may ask, or a query alone."""
        largest = setting.largest_share
        if every_query_a_unit(setting):
            units, largest = setting.queries, 1
        elif setting.unit == "analyst":
            units = len(setting.shares)
        else:
            units = setting.statements
        return Size(
            records=setting.records,
            universe=support_size(setting.axes),
            units=units,
            queries=setting.queries,
            largest_unit=largest,
        )


def every_query_a_unit(setting: PublicParameters) -> bool:
    """Whether every cell of a marginal is a unit of the game by itself: only where no analyst is protected."""
    return setting.options.get("units") == "query"


def forced_share(setting: PublicParameters) -> float | None:
    """The part of the data budget that the game may have, where that is forced; 1 leaves nothing for repair."""
    share = setting.options.get("game_share")
    return float(share) if isinstance(share, int | float) else None


def game_bound(game: GameParameters, size: Size, beta: float) -> float:
    """Return the error that fewer than `s` units exceed, with probability `1 - beta`. Above 1 it says nothing."""
    rounds, query_rate, data_rate = game.rounds, game.query_rate(size.records), game.data_rate
    if data_rate == 0 or query_rate == 0:
        return math.inf
    confidence = math.log(1 / beta) if game.play == "mixed" else math.log(2 / beta)
    bound = (
        math.log(size.universe) / (data_rate * rounds)
        + log_actions(game, size) / (query_rate * rounds)
        + query_rate / 2
        + math.sqrt(confidence / (2 * rounds * game.batch))
    )
    if game.play == "sampled":
        bound += 3 * data_rate / 8 + math.sqrt(2 * confidence / (max(1, rounds - 1) * game.draws))
    return bound


def log_actions(game: GameParameters, size: Size) -> float:
    """`L`: how far the query player's start may be from any answer to the data player."""
    return math.log(size.units / game.density) + math.log(2 * size.largest_unit)


def sampling_error(game: GameParameters, size: Size, beta: float) -> float:
    """Return what drawing the synopsis's records alone may cost any query (Hoeffding, all queries at once).

    Below it a synopsis cannot be told from a perfect one; so it is also where detection puts its threshold.
    """
    return math.sqrt(math.log(2 * size.queries / beta) / (2 * game.rounds * game.batch))


def data_rho(game: GameParameters, size: Size) -> float:
    """Return what the game costs the data, in zCDP."""
    query_rate = game.query_rate(size.records)
    if game.play == "sampled":
        return accounting.sampled_play_data_rho(game.rounds, game.draws, query_rate, size.records, size.units)
    slack = accounting.rounding_slack(size.units, size.queries)
    return accounting.mixed_play_data_rho(game.rounds, game.batch, game.data_rate, query_rate, size.records, slack)


def analyst_mixture(game: GameParameters, size: Size) -> accounting.BinomialMixture:
    """Return what sampled play costs the analysts."""
    return accounting.sampled_play_analyst_mixture(
        game.rounds, game.batch, game.draws, game.data_rate, game.density, size.units
    )


def analyst_rho(game: GameParameters, size: Size) -> float:
    """Return what mixed play costs the analysts, in zCDP."""
    slack = accounting.rounding_slack(size.units, size.queries)
    return accounting.mixed_play_analyst_rho(game.rounds, game.batch, game.data_rate, game.density, slack)


def within_budgets(game: GameParameters, size: Size, setting: PublicParameters, share: float) -> bool:
    """Return whether the game alone keeps to `share` of the data budget and to the analysts' budget."""
    data, analyst = setting.data_budget, setting.analyst_budget
    if data_rho(game, size) * RHO_UNIT > share * usable_rho(data):
        return False
    if not setting.protects_analysts:
        return True
    if game.play == "mixed":
        return analyst_rho(game, size) * RHO_UNIT <= usable_rho(analyst)
    return mixture_delta(analyst_mixture(game, size), analyst.epsilon) <= usable_delta(analyst)


def with_steps(game: GameParameters, query_rate: float, data_rate: float, records: int) -> GameParameters:
    """Return `game` with its learning rates rounded down to their grids.

    Args:
        game: all else of the game.
        query_rate: the query player's, in nats for each whole unit of payoff.
        data_rate: the data player's, likewise.
        records: the public number of records.
    """
    data_unit = 2.0**-20 if game.play == "mixed" else game.draws / 2.0**EXPONENT_BITS
    return replace(
        game,
        query_step=int(query_rate * 2.0**EXPONENT_BITS / (records * game.batch)),
        data_step=int(data_rate / data_unit),
    )
