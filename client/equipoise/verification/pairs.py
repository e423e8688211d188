"""Whether the pair of a part follows from what the part is made of, by published theorems alone.

A `Mixture` and `ThresholdTests` name the numbers that their guarantee is proven from, and beside them the (epsilon,
delta) pair that counts where pairs are added. Whoever wrote the part could have written any pair; so it is derived
anew here. That the numbers are those of what was run is for the replay to find, as it is of every other part.

**Theorem** (Canonne, Kamath & Steinke 2020, Proposition 12). If `D_a(P || Q) <= r` for some order `a > 1`, then `P`
and `Q` are `(epsilon, delta)`-close with `log delta = (a - 1) (r - epsilon + log(1 - 1/a)) - log a`.

**Theorem** (Bretagnolle & Huber 1979). And with `delta = sqrt(1 - exp(-r))`, for every epsilon.

**Theorem** (joint convexity of the hockey-stick divergence: Balle, Barthe & Gaboardi 2018). Two mixtures with the
same weights are `(epsilon, delta)`-close with the mean of their components' deltas. Where the component of `w` is
`w^2 rho`-zCDP, `D_a <= a w^2 rho`, the deltas above grow with `w`, so a stochastically larger `w` bounds them.

**Theorem** (Bernstein). A binomial number of variance `v` is `t` or more from its mean, on either side, with
probability at most `exp(-t^2 / (2 (v + t / 3)))`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting import ORDERS as CURVE_ORDERS
from equipoise.accounting import BinomialMixture, Mixture, PrivacyEvent, ThresholdTests, threshold_tests_curve
from equipoise.accounting.cost import float_above
from equipoise.verification.conversion import ORDERS, TOLERANCE

FAR = 700.0  # nats: what is as improbable as e^-700 counts as delta 1
MAX_VARIANCE = 2.0**30  # the variance of a binomial number that is summed; beyond, all trials are taken to differ
MAX_TRIALS = 1 << 53  # trials that a double counts exactly
BLOCKS = 1 << 12  # of numbers of differing trials, each at the loss of its largest
ROWS = 1 << 8  # of them at a time


def pairs_hold(parts: Iterable[PrivacyEvent]) -> bool:
    """Tell whether each part that names a pair beside what the pair is proven from is charged no less than that."""
    return all(pair_holds(part) for part in parts if isinstance(part, Mixture | ThresholdTests))


@lru_cache(maxsize=256)  # every analyst of a round is charged for the same parts
def pair_holds(part: Mixture | ThresholdTests) -> bool:
    """Tell whether the pair of a part follows from its numbers; numbers that no double holds prove nothing."""
    try:
        epsilon, delta = float(part.epsilon) * (1 + TOLERANCE), float(part.delta)
        if epsilon == math.inf:
            return False
        if isinstance(part, ThresholdTests):
            curve = threshold_tests_curve(float(part.test_epsilon), part.positives, float(part.answer_rho))
            least = float(least_delta(np.array(CURVE_ORDERS), np.array(curve.divergences), epsilon))
        else:
            made = BinomialMixture(part.trials, float_above(part.probability), float_above(part.rho_of_one))
            least = mixture_delta(made, epsilon)
    except OverflowError:
        return False
    return least <= delta * (1 + TOLERANCE)


def mixture_delta(mixture: BinomialMixture, epsilon: float) -> float:
    """Bound the delta of a mixture at `epsilon` from above.

    Raises:
        OverflowError: there are more trials than a double can count.
    """
    weights, differing, beyond = _binomial(mixture)
    total = beyond
    for start in range(0, len(weights), ROWS):
        rows = slice(start, start + ROWS)
        with np.errstate(over="ignore"):
            divergences = np.multiply.outer(differing[rows] ** 2 * mixture.rho_of_one, ORDERS)
        total += float(weights[rows] @ least_delta(ORDERS, divergences, epsilon))
    return min(1.0, total)


def least_delta(
    orders: NDArray[np.float64], divergences: NDArray[np.float64], epsilon: float
) -> NDArray[np.float64]:
    """Convert divergences to the least delta that the two theorems prove at `epsilon`.

    Args:
        orders: Renyi orders, float64[k], all above 1.
        divergences: what is known at each order, float64[..., k]; infinite where nothing is.
        epsilon: in nats, finite.

    Returns:
        The deltas, float64[...], at most 1.
    """
    with np.errstate(over="ignore"):  # what is infinite has delta 1
        exponents = (orders - 1) * (divergences - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    by_order = np.exp(np.minimum(exponents.min(axis=-1), 0.0))
    return np.asarray(np.minimum(by_order, np.sqrt(-np.expm1(-divergences.min(axis=-1)))))


def _binomial(mixture: BinomialMixture) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Give bounds on the probabilities of blocks of numbers, the largest number of each, and what is left out.

    Every probability is a known multiple of the one before it. Those of the window are normed to add up to 1, as if
    it held everything, so that each is rounded up.
    """
    trials, chance = mixture.trials, mixture.probability
    if trials > MAX_TRIALS:
        raise OverflowError("trials: more than a double counts")
    variance = trials * chance * (1 - chance)
    if not 0 < chance < 1 or variance > MAX_VARIANCE:
        return np.ones(1), np.array([float(trials) if chance > 0 else 0.0]), 0.0
    far = FAR / 3 + math.sqrt(FAR**2 / 9 + 2 * FAR * variance)
    first, last = max(0, math.floor(trials * chance - far)), min(trials, math.ceil(trials * chance + far))
    numbers = np.arange(float(first), last + 1)
    steps = np.log((trials - numbers[:-1]) / (numbers[:-1] + 1)) + math.log(chance) - math.log1p(-chance)
    logarithms = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logarithms - logarithms.max())
    starts = np.arange(0, len(numbers), -(-len(numbers) // BLOCKS))
    beyond = ((first > 0) + (last < trials)) * math.exp(-FAR)
    return np.add.reduceat(weights, starts) / weights.sum(), np.append(numbers[starts[1:] - 1], last), beyond
