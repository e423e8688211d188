"""A certified lower bound on the epsilon that a mechanism really has, from its outcomes on two neighbouring inputs.

A mechanism is (epsilon, delta)-DP only if `P(S) <= e^epsilon P'(S) + delta` for every event `S`. One half of the
runs chooses the event, the other half alone bounds both probabilities (Clopper & Pearson 1934), so the choice
needs no correction however many events were looked at. Pure statistics: any two samplers of outcomes will do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom

# The parts of one outcome. Parts are weighed one by one, so what tells only together belongs in one part.
Outcome = tuple[Hashable, ...]
# The outcome of the run with this number; runs must be independent of one another.
Sampler = Callable[[int], Outcome]

MAX_EPSILON = 500.0  # whose exponential is far from the largest double
SMOOTHING = 0.5  # added to every count, so that a part seen once does not decide


@dataclass(frozen=True)
class Event:
    """The outcomes whose parts' weights, times `sign`, sum to at least `threshold`; unknown parts weigh 0."""

    weights: tuple[Mapping[Hashable, float], ...]
    sign: int
    threshold: float

    def contains(self, outcome: Outcome) -> bool:
        """Return whether the outcome is in the event."""
        return self.sign * weight_of(self.weights, outcome) >= self.threshold


@dataclass(frozen=True)
class Certificate:
    """With confidence `1 - level` the mechanism is not (`e`, `delta`)-DP for any `e` below `epsilon`.

    The event was hit in `hits` of `runs` runs on the one input, and in `other_hits` on the other.
    """

    epsilon: float
    hits: int
    other_hits: int
    runs: int


def certify(first: Sampler, second: Sampler, runs: int, delta: float, level: float) -> Certificate:
    """Run each sampler `2 runs` times: with numbers below `runs` to choose the event, with the others to test it.

    Args:
        first: the mechanism on the one input, by the number of the run.
        second: the mechanism on the other input.
        runs: on each input to choose the event, and as many again to test it; at least 1.
        delta: at which epsilon is certified; in [0, 1).
        level: the probability of a false alarm; in (0, 1).

    Returns:
        The certified epsilon, which exceeds the true one with probability at most `level`, whatever the mechanism.

    Raises:
        ValueError: a number lies outside its range.
    """
    check(runs, delta, level)
    training = [[sampler(run) for run in range(runs)] for sampler in (first, second)]
    event = most_telling_event(training[0], training[1], delta, level)
    hits, other_hits = (
        sum(event.contains(sampler(run)) for run in range(runs, 2 * runs)) for sampler in (first, second)
    )
    if event.sign < 0:
        hits, other_hits = other_hits, hits
    epsilon = float(certified_epsilon(np.array([hits]), np.array([other_hits]), runs, delta, level)[0])
    return Certificate(epsilon, hits, other_hits, runs)


def certified_epsilon(
    hits: NDArray[np.int64], other_hits: NDArray[np.int64], runs: int, delta: float, level: float
) -> NDArray[np.float64]:
    """Return the lower bound on epsilon that these numbers of hits certify.

    Each of the two one-sided bounds `p >= low`, `q <= high` fails with probability at most `level / 2`; where both
    hold, `p <= e^epsilon q + delta` gives `epsilon >= log((low - delta) / high)`.

    Args:
        hits: int64[k], of the event on the one input, of `runs`.
        other_hits: int64[k], of the event on the other input, of `runs`.
        runs: on each input.
        delta: at which epsilon is certified.
        level: the probability that a bound is wrong.

    Returns:
        float64[k], at least 0.
    """
    low = np.where(hits > 0, beta.ppf(level / 2, np.maximum(hits, 1), runs - hits + 1), 0.0)
    high = np.where(other_hits < runs, beta.isf(level / 2, other_hits + 1, np.maximum(runs - other_hits, 1)), 1.0)
    ratio = np.maximum(low - delta, 0.0) / high
    return np.asarray(np.log(np.maximum(ratio, 1.0)))


def power(chance: float, other: float, runs: int, delta: float, level: float, claim: float) -> float:
    """Return the exact probability that an event refutes `claim`, which is that it certifies more.

    Args:
        chance: the event's probability on the one input.
        other: the event's probability on the other input.
        runs: on each input.
        delta: at which epsilon is claimed.
        level: the probability of a false alarm.
        claim: the claimed epsilon.

    Raises:
        ValueError: `runs`, `delta` or `level` lies outside its range.
    """
    check(runs, delta, level)
    counts = np.arange(runs + 1)
    low = np.where(counts > 0, beta.ppf(level / 2, np.maximum(counts, 1), runs - counts + 1), 0.0)
    high = np.where(counts < runs, beta.isf(level / 2, counts + 1, np.maximum(runs - counts, 1)), 1.0)
    # `high` grows with its count, so for each number of hits the refuting numbers of other hits are the first ones.
    refuting = np.searchsorted(high, np.maximum(low - delta, 0.0) * math.exp(-claim), side="left")
    return float(np.dot(binom.pmf(counts, runs, chance), binom.cdf(refuting - 1, runs, other)))


def detectable_epsilon(runs: int, delta: float, level: float, claim: float, chance: float) -> float | None:
    """Return the smallest true epsilon that refutes a claim with a given probability, if the best event is found.

    Of all mechanisms with an epsilon, at a delta, randomised response with that delta tells most (Kairouz, Oh &
    Viswanath 2015): its event has the chances `(e^epsilon + delta) / (1 + e^epsilon)` and `(1 - delta) / (1 +
    e^epsilon)`. So no mechanism with a smaller epsilon is found out as reliably.

    Args:
        runs: On each of the two inputs.
        delta: At which epsilon is certified.
        level: The probability of a false alarm.
        claim: The epsilon that is claimed.
        chance: The probability of refuting the claim.

    Returns:
        The epsilon, right to 10^-3. None if so few runs certify no epsilon above the claim, whatever they show.

    Raises:
        ValueError: `runs`, `delta` or `level` lies outside its range.
    """
    if largest_certified(runs, delta, level) <= claim:
        return None

    def refutes(epsilon: float) -> bool:
        odds = math.exp(epsilon)
        return power((odds + delta) / (1 + odds), (1 - delta) / (1 + odds), runs, delta, level, claim) >= chance

    low, high = claim, claim + 1
    while not refutes(high):
        low, high = high, 2 * high
        if high > MAX_EPSILON:
            return None
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if refutes(middle) else (middle, high)
    return high


def largest_certified(runs: int, delta: float, level: float) -> float:
    """Return the most that `runs` certify at `delta` and `level`: all hit on the one input, none on the other."""
    return float(certified_epsilon(np.array([runs]), np.array([0]), runs, delta, level)[0])


def most_telling_event(first: Sequence[Outcome], second: Sequence[Outcome], delta: float, level: float) -> Event:
    """Return the event with the largest certified epsilon on these outcomes, among thresholds of likelihood ratios.

    The ratios are that of all parts as if they were independent, and that of each part alone: beside many parts
    that tell nothing, one that tells is lost in a sample. Either side may be the likelier one: `sign` -1 is an
    event that `second` hits more often.

    Args:
        first: outcomes on the one input, all of as many parts.
        second: as many outcomes on the other input.
        delta: at which epsilon is certified.
        level: the probability of a false alarm.
    """
    every = tuple(
        log_ratios([outcome[part] for outcome in first], [outcome[part] for outcome in second])
        for part in range(len(first[0]))
    )
    alone = [tuple(table if own == part else {} for own, table in enumerate(every)) for part in range(len(every))]
    best, telling = -1.0, Event(every, 1, math.inf)
    for weights in [every, *(alone if len(every) > 1 else ())]:
        scores = [np.sort([weight_of(weights, outcome) for outcome in side]) for side in (first, second)]
        for sign, (ours, theirs) in ((1, scores), (-1, scores[::-1])):
            thresholds = np.unique(sign * ours)
            hits, other_hits = (at_least(np.sort(sign * side), thresholds) for side in (ours, theirs))
            certified = certified_epsilon(hits, other_hits, len(first), delta, level)
            largest = int(np.argmax(certified))
            if certified[largest] > best:
                best, telling = float(certified[largest]), Event(weights, sign, float(thresholds[largest]))
    return telling


def log_ratios(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> dict[Hashable, float]:
    """Return the smoothed log-likelihood ratio of every value of one part.

    Args:
        ours: the values of runs on the one input.
        theirs: the values of runs on the other.
    """
    counts, others = Counter(ours), Counter(theirs)
    return {
        value: math.log((counts[value] + SMOOTHING) / (others[value] + SMOOTHING))
        for value in counts.keys() | others.keys()
    }


def weight_of(weights: Sequence[Mapping[Hashable, float]], outcome: Outcome) -> float:
    """Return the summed weight of an outcome's parts."""
    return math.fsum(table.get(value, 0.0) for table, value in zip(weights, outcome, strict=True))


def at_least(ascending: NDArray[np.float64], thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many of the `ascending` numbers reach each of the `thresholds`: int64, one for each."""
    return np.asarray(len(ascending) - np.searchsorted(ascending, thresholds, side="left"))


def check(runs: int, delta: float, level: float) -> None:
    """Refuse numbers with which an audit could certify nothing, or anything.

    Raises:
        ValueError: `runs` is below 1, `delta` is not in [0, 1), or `level` is not in (0, 1).
    """
    if runs < 1:
        raise ValueError(f"runs: {runs} is below 1")
    if not 0 <= delta < 1:
        raise ValueError(f"delta: {delta} is not between 0 and 1")
    if not 0 < level < 1:
        raise ValueError(f"level: {level} is not between 0 and 1")
