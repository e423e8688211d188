"""What the game costs: the people in the table, and one unit of the analysts, in either play.

Slack of rounding is charged, not ignored: `rounding_slack` bounds what the integer weights of the game
differ from the ideal ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.accounting.cost import OUTWARD

COEFFICIENT_BITS = 44  # mixed play holds a mixed action as integers in units of 2^-44
POTENTIAL_BITS = 28  # and the data player's potential as integers in units of 2^-28
DRAW_BITS = 30  # integer weights of a draw are within a factor 1 +- 2^-30 of the real ones


def rounding_slack(units: int, queries: int) -> float:
    """Returns by how much, at most, rounding moves the range of a mixed action's payoff, over a pair of runs.

    A mixed action's coefficients are computed in doubles with a relative error of at most
    `(units + 64) 2^-51` (table exponentials, exact sums, a few products: the share of the units is to spare) and
    rounded to integers in units of 2^-44, an absolute error of 2^-45 for each query; both for each of the two runs.

    Args:
        units: statements or analysts that the query player tells apart.
        queries: of the game.

    Returns:
        The slack in whole units of payoff.
    """
    relative = (units + 64) * 2.0**-51
    absolute = queries * 2.0 ** -(COEFFICIENT_BITS + 1)
    return 2 * (relative + absolute)


def mixed_play_data_rho(
    rounds: int, batch: int, data_rate: float, query_rate: float, records: int, slack: float
) -> float:
    """Returns what the game in mixed play costs the people in the table.

    Between neighbouring data every payoff moves by at most `1/n` a round, so after `j` rounds the query
    player's exponents move by at most `a_j = query_rate j / n`, its mixed action in total variation by
    `a_j / 2`, and the payoff vector over the records by a range of at most `2 tanh(a_j / 2)`. At round `t` the
    data player's exponents therefore differ by a range `R_t = data_rate (sum_{j<t} 2 tanh(a_j / 2) + slack)`,
    and each of the `batch` records drawn then costs `R_t^2 / 8`. (Derivation: docs/mechanisms/equilibrium.md,
    nothing else of the game is released.)

    Args:
        rounds: the rounds of the game.
        batch: the records that are drawn in each round.
        data_rate: the data player's learning rate.
        query_rate: the query player's learning rate.
        records: the records of the table, n.
        slack: `rounding_slack`.

    Returns:
        Rho of zCDP, rounded outwards.
    """
    moves = 2 * np.tanh(query_rate * np.arange(1, rounds) / records / 2) + slack
    ranges = data_rate * (np.concatenate([[0.0], np.cumsum(moves)]) + _potential_rounding(rounds))
    return float(batch * np.sum(ranges**2) / 8 * OUTWARD)


def sampled_play_data_rho(rounds: int, draws: int, query_rate: float, records: int, units: int) -> float:
    """Returns what the game in sampled play costs the people in the table.

    The records are post-processing of the drawn actions. An action drawn after `j` payoffs is two draws (the
    unit, then the action inside it), each of range `2 a_j` with `a_j = query_rate j / n`: the projection adds
    nothing, as `log c` moves by at most `a_j` and the total is fixed. Integer weights add `4 g` to each range.
    So a draw costs `(2 a_j + 4 g)^2 / 8` twice, and `draws` are made after each of the payoffs `1..rounds-1`.

    Args:
        rounds: the rounds of the game.
        draws: the actions that are drawn after each payoff.
        query_rate: the query player's learning rate.
        records: the records of the table, n.
        units: the protected units, statements or analysts.

    Returns:
        Rho of zCDP, rounded outwards.
    """
    ranges = 2 * query_rate * np.arange(1, rounds) / records + 4 * draw_slack(units)
    return float(draws * np.sum(2 * ranges**2 / 8) * OUTWARD)


def draw_slack(units: int) -> float:
    """Returns `g`: integer weights of a draw are within `exp(+-g)` of the ideal ones, up to a common factor."""
    return (units + 64) * 2.0**-51 + 2.0**-DRAW_BITS


def mixed_play_analyst_rho(rounds: int, batch: int, data_rate: float, density: float, slack: float) -> float:
    """Returns what the game in mixed play costs one unit of the analysts, against all other analysts together.

    Given the released records, the mixed action moves in total variation by at most `1/density` whatever the
    unit contains (its mass is capped, and all other masses move in one direction), so the payoff vector
    moves by a range `2/density` a round and round `t`'s exponents by `2 data_rate (t-1) / density`.

    Args:
        rounds: of the game.
        batch: records drawn in each round.
        data_rate: the data player's learning rate, in nats for each whole unit of payoff.
        density: of the query player's distributions: no unit has more than `1 / density` of the mass.
        slack: by how much more rounding may move one round's payoffs, as `rounding_slack` bounds it.

    Returns:
        The rho, for replacing one unit.
    """
    moves = np.arange(rounds) * (2 / density + slack) + _potential_rounding(rounds)
    return float(batch * np.sum((data_rate * moves) ** 2) / 8 * OUTWARD)


def _potential_rounding(rounds: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Rounding down to units of 2^-28 in either run moves a range by two units; round 1 has no potential yet."""
    return np.where(np.arange(rounds) > 0, 2.0 ** (1 - POTENTIAL_BITS), 0.0)


@dataclass(frozen=True)
class BinomialMixture:
    """Privacy loss that is `w^2 rho_of_one`-zCDP given `w`, where `w` is at most Binomial(trials, probability).

    By joint convexity of the hockey-stick divergence its delta at epsilon is at most
    `sum_w P(w) delta_zCDP(w^2 rho_of_one)(epsilon)`. It has no useful zCDP form.
    """

    trials: int
    probability: float
    rho_of_one: float


def sampled_play_analyst_mixture(
    rounds: int, batch: int, draws: int, data_rate: float, density: float, units: int
) -> BinomialMixture:
    """Returns what the game in sampled play costs one unit of the analysts.

    Couple the two runs: each of the `(rounds-1) draws` draws differs with probability at most
    `1/density + 2 g`, independently of the past; given `w` differing draws every record's exponents differ
    by a range of at most `2 w data_rate / draws`, and there are `rounds batch` records. (Replaces HRU Lemma
    3.8, whose proof averages epsilon over `w`.)

    Args:
        rounds: of the game.
        batch: records drawn in each round.
        draws: actions drawn in each round.
        data_rate: the data player's learning rate, in nats for each whole unit of payoff.
        density: of the query player's distributions: no unit has more than `1 / density` of the mass.
        units: statements or analysts that the query player tells apart.

    Returns:
        The mixture over the number of differing draws, for replacing one unit.
    """
    return BinomialMixture(
        trials=(rounds - 1) * draws,
        probability=min(1.0, 1 / density + 2 * draw_slack(units)),
        rho_of_one=rounds * batch * (2 * data_rate / draws) ** 2 / 8 * OUTWARD,
    )
