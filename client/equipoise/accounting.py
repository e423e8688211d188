"""Every privacy cost as a pure function with its theorem. No conversion to (epsilon, delta) happens here.

Costs are zero-concentrated differential privacy `rho` (Bun & Steinke 2016, Definition 1.1) unless said
otherwise; rhos of successive mechanisms add (Lemma 1.7). A mechanism whose log-likelihood ratios between
neighbours have range `r` (largest minus smallest) satisfies `r^2 / 8`-zCDP (Cesar & Rogers 2021, for
Durfee & Rogers' bounded range); range `r` of an exponent gives range `r` of the drawn distribution.

Slack of rounding is charged, not ignored: `rounding_slack` bounds what the integer weights of the game
differ from the ideal ones. Results in floating point are pushed upwards by `OUTWARD`, far more than the
arithmetic here can err, and each charge is rounded up once to whole units (`Cost`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

RHO_UNIT = 10**12  # rho and epsilon are charged in units of 10^-12
DELTA_UNIT = 10**18  # delta in units of 10^-18: 1/n^2 must not round to zero
OUTWARD = 1 + 1e-9

COEFFICIENT_BITS = 44  # mixed play holds a mixed action as integers in units of 2^-44
POTENTIAL_BITS = 28  # and the data player's potential as integers in units of 2^-28
DRAW_BITS = 30  # integer weights of a draw are within a factor 1 +- 2^-30 of the real ones


@dataclass(frozen=True)
class Cost:
    """A charge in whole units: `rho` and `epsilon` of 10^-12, `delta` of 10^-18.

    Means: `rho`-zCDP composed with an (`epsilon`, `delta`) pair. A plain rho has `epsilon` 0 and the small
    `delta` that truncated samplers cost.
    """

    rho: int = 0
    epsilon: int = 0
    delta: int = 0

    def __post_init__(self) -> None:
        if min(self.rho, self.epsilon, self.delta) < 0:
            raise ValueError("a cost cannot be negative")

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.rho + other.rho, self.epsilon + other.epsilon, self.delta + other.delta)


def rounded_up(amount: float | Fraction, unit: int) -> int:
    """`amount` in whole units of `1/unit`, rounded up. Raises `ValueError` if it is not finite or negative."""
    if not (0 <= amount < math.inf):
        raise ValueError(f"a cost must be finite and not negative, not {amount}")
    return math.ceil(Fraction(amount) * unit)


def rounding_slack(units: int, queries: int) -> float:
    """At most how far the range of a mixed action's payoff is moved by rounding, over a pair of runs.

    A mixed action's coefficients are computed in doubles with a relative error of at most
    `(units + 64) 2^-51` (table exponentials, a sequential sum over the units, a few products) and rounded to
    integers in units of 2^-44, an absolute error of 2^-45 for each query; both for each of the two runs.
    """
    relative = (units + 64) * 2.0**-51
    absolute = queries * 2.0 ** -(COEFFICIENT_BITS + 1)
    return 2 * (relative + absolute)


def mixed_play_data_rho(
    rounds: int, batch: int, data_rate: float, query_rate: float, records: int, slack: float
) -> float:
    """What the game in mixed play costs the people in the table.

    Between neighbouring data every payoff moves by at most `1/n` a round, so after `j` rounds the query
    player's exponents move by at most `a_j = query_rate j / n`, its mixed action in total variation by
    `a_j / 2`, and the payoff vector over the records by a range of at most `2 tanh(a_j / 2)`. At round `t` the
    data player's exponents therefore differ by a range `R_t = data_rate (sum_{j<t} 2 tanh(a_j / 2) + slack)`,
    and each of the `batch` records drawn then costs `R_t^2 / 8`. (Derivation: docs/mechanisms.md,
    nothing else of the game is released.)
    """
    moves = 2 * np.tanh(query_rate * np.arange(1, rounds) / records / 2) + slack
    ranges = data_rate * (np.concatenate([[0.0], np.cumsum(moves)]) + _potential_rounding(rounds))
    return float(batch * np.sum(ranges**2) / 8 * OUTWARD)


def sampled_play_data_rho(rounds: int, draws: int, query_rate: float, records: int, units: int) -> float:
    """What the game in sampled play costs the people in the table.

    The records are post-processing of the drawn actions. An action drawn after `j` payoffs is two draws (the
    unit, then the action inside it), each of range `2 a_j` with `a_j = query_rate j / n`: the projection adds
    nothing, as `log c` moves by at most `a_j` and the total is fixed. Integer weights add `4 g` to each range.
    So a draw costs `(2 a_j + 4 g)^2 / 8` twice, and `draws` are made after each of the payoffs `1..rounds-1`.
    """
    ranges = 2 * query_rate * np.arange(1, rounds) / records + 4 * draw_slack(units)
    return float(draws * np.sum(2 * ranges**2 / 8) * OUTWARD)


def draw_slack(units: int) -> float:
    """`g`: integer weights of a draw are within `exp(+-g)` of the ideal ones, up to a common factor."""
    return (units + 64) * 2.0**-51 + 2.0**-DRAW_BITS


def mixed_play_analyst_rho(rounds: int, batch: int, data_rate: float, density: float, slack: float) -> float:
    """What the game in mixed play costs one unit of the analysts, against all other analysts together.

    Given the released records, the mixed action moves in total variation by at most `1/density` whatever the
    unit contains (its mass is capped, and all other masses move in one direction), so the payoff vector
    moves by a range `2/density` a round and round `t`'s exponents by `2 data_rate (t-1) / density`.
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
    """What the game in sampled play costs one unit of the analysts.

    Couple the two runs: each of the `(rounds-1) draws` draws differs with probability at most
    `1/density + 2 g`, independently of the past; given `w` differing draws every record's exponents differ
    by a range of at most `2 w data_rate / draws`, and there are `rounds batch` records. (Replaces HRU Lemma
    3.8, whose proof averages epsilon over `w`.)
    """
    return BinomialMixture(
        trials=(rounds - 1) * draws,
        probability=min(1.0, 1 / density + 2 * draw_slack(units)),
        rho_of_one=rounds * batch * (2 * data_rate / draws) ** 2 / 8 * OUTWARD,
    )


def pure_rho(epsilon: Fraction, times: int = 1) -> Fraction:
    """`times` mechanisms, each `epsilon`-DP: `times epsilon^2 / 2` (Bun & Steinke 2016, Proposition 1.4)."""
    return times * epsilon * epsilon / 2


def sparse_vector_rho(epsilon: Fraction, positives: int) -> Fraction:
    """A sparse vector that stops after `positives`, each stretch between them one AboveThreshold.

    AboveThreshold with threshold noise Lap(2/epsilon) and test noise Lap(4/epsilon) on statements of
    sensitivity 1 is epsilon-DP however many statements are tested (Dwork & Roth 2014, Theorem 3.23); fresh
    threshold noise after each positive makes the whole a composition of `positives` of them. Charged in full
    whether all are used or not. No numeric answer may be taken from the test noise.
    """
    return pure_rho(epsilon, positives)


def laplace_rho(epsilon: Fraction, answers: int) -> Fraction:
    """`answers` statements, each answered whole by discrete Laplace noise of scale (its L1 sensitivity)/epsilon.

    Each is epsilon-DP (Ghosh, Roughgarden, Sundararajan 2012 for the discrete law).
    """
    return pure_rho(epsilon, answers)


def exponential_mechanism_rho(epsilon: Fraction, draws: int) -> Fraction:
    """`draws` selections, each drawn with exponents `epsilon score / (2 sensitivity)`.

    Between neighbours each exponent moves by at most `epsilon / 2`, so the law has range `epsilon` and costs
    `epsilon^2 / 8` (McSherry & Talwar 2007 for the mechanism, Cesar & Rogers 2021 for the range).
    """
    return draws * epsilon * epsilon / 8


def analyst_tests_rho(epsilon: Fraction, analysts: int) -> Fraction:
    """Every analyst's largest error tested once against a public threshold, with noise of its own.

    The largest error over any set of queries moves by at most `1/n` when a record is replaced, so one test with
    discrete Laplace noise of scale `1/(n epsilon)` is epsilon-DP. All analysts are tested, so all are charged.
    """
    return pure_rho(epsilon, analysts)


def private_weights_rho(
    select_epsilon: Fraction, measure_epsilon: Fraction, certify_epsilon: Fraction, rounds: int, places: int
) -> Fraction:
    """`places` analysts answered by private multiplicative weights, each on its own workload.

    A run is `rounds` selections by the exponential mechanism and `rounds` counts (sensitivity 1) with discrete
    Laplace noise, and one noisy largest error at the end; the hypotheses between them are functions of what
    was drawn. Who gets a place is decided by private outputs, and never more than `places` are: charged in
    full, never for the realised number.
    """
    run = exponential_mechanism_rho(select_epsilon, rounds)
    run += pure_rho(measure_epsilon, rounds) + pure_rho(certify_epsilon)
    return places * run


def repair_places_rho(epsilon: Fraction) -> Fraction:
    """What the count test that grants repair places costs one analyst, against all others together.

    Slots in a public order; after slot `i`, of which `N_i` were positive, stop if `N_i + W_i >= c + Z`, with
    `Z` drawn once and each `W_i` afresh, all discrete Laplace of rate `epsilon`. Let one analyst's slot `j` flip
    from negative to positive: `N_i` grows by 1 for all `i >= j`. Given `Z`, every other analyst's place is a
    function of where the test stops. Where it stops at `i < j` nothing changed. Otherwise:

    - from negative to positive, compare `Z = z` with `z + 1`: earlier slots go on at least as probably, all
      slots from `j` on do exactly what they did, and `P(Z = z) <= e^epsilon P(Z = z + 1)`;
    - from positive to negative, keep `Z`: going on gets more probable, and the one stop is at most `e^epsilon`
      times as probable as before.

    So it is epsilon-DP for any number of slots (compare Lyu, Su & Li 2017 on monotone counts), which is
    `epsilon^2 / 2`-zCDP; a positivity that is itself random is a mixture of the two cases. If the stop were tested
    only at positives, another slot could decide whether there is a test at all, and no epsilon would hold.
    """
    return pure_rho(epsilon)


def repair_places_delta(epsilon: Fraction, beyond: int, budget: float) -> float:
    """The delta, at epsilon `budget`, of a hard stop at `c + beyond` positives in the count test above.

    With `c + beyond` positives counted the test goes on only if `Z - W > beyond`, so the hard stop changes the
    law by at most that probability `p` in total variation, in both of the runs compared: `(1 + e^budget) p`. With
    `q = e^-epsilon` and `A = (1 + q^2) / (1 - q^2)` the difference of two such noises is `k` with probability
    `((1 - q) / (1 + q))^2 q^|k| (|k| + A)`, which sums in closed form. As the test without the stop is
    epsilon-DP, the one with it is (epsilon, (1 + e^epsilon) p)-DP by itself; such a delta adds up over rounds
    whatever the total epsilon, and what is charged covers it for every `budget` of at least epsilon.
    """
    rate = float(epsilon)
    ratio = math.exp(-rate)
    gap = -math.expm1(-rate)
    even = (1 + ratio**2) / -math.expm1(-2 * rate)
    tail = (beyond + 1 + even) / gap + ratio / gap**2
    chance = (gap / (1 + ratio)) ** 2 * math.exp(-rate * (beyond + 1)) * tail
    # A step up, so that what underflows is not free.
    return min(1.0, math.nextafter((1 + math.exp(budget)) * chance * OUTWARD, math.inf))
