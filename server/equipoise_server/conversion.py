"""Conversion of costs to (epsilon, delta), always by `dp_accounting`: the only place that imports it.

One round's cost is a rho beside a pair, a total of rounds a divergence beside a delta; `event_of` exports the parts
of a charge as the library's own events, so that anybody can compose them with any of its accountants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from dp_accounting import dp_event
from dp_accounting.rdp import rdp_privacy_accountant as rdp

from equipoise.accounting import (
    DELTA_UNIT,
    OUTWARD,
    RHO_UNIT,
    ApproximateDpEvent,
    BinomialMixture,
    Cost,
    Mixture,
    PrivacyEvent,
    RenyiCurve,
    RenyiEvent,
    ThresholdTests,
)
from equipoise.accounting import ORDERS as CURVE_ORDERS

# Small budgets have their best order near epsilon / (2 rho), which may be far beyond the library's defaults.
ORDERS = tuple(float(order) for order in 1 + np.geomspace(0.02, 1e5, 1200))
NEIGHBOURS = 2  # so many orders on either side of the best one are looked at, too
GROUPING = 100  # differing draws of a mixture are taken together by a part of this
MIN_RHO = 2.0**-52  # `dp_accounting` raises a domain error at divergences so small that e^-d is 1 in doubles
NEGLIGIBLE = 1e-24  # what is as probable as this is counted as lost

_GRID = np.array(ORDERS)
_LOGS = np.log(_GRID)
_LOG_OF_ONE_LESS = np.log1p(-1 / _GRID)


@lru_cache(maxsize=4096)
def epsilon_of_rho(rho: float, delta: float) -> float:
    """The smallest epsilon that `dp_accounting` certifies for `rho`-zCDP at `delta`; inf where delta is 0."""
    if rho == 0:
        return 0.0
    if delta <= 0:
        return math.inf
    bounds = _GRID * rho + _LOG_OF_ONE_LESS - (_LOGS + math.log(delta)) / (_GRID - 1)
    orders = _orders_about(int(bounds.argmin()))
    epsilon, _ = rdp.compute_epsilon(orders, [order * rho for order in orders], delta)
    return float(epsilon)


@lru_cache(maxsize=4096)
def delta_of_rho(rho: float, epsilon: float) -> float:
    """Return the smallest delta that `dp_accounting` certifies for `rho`-zCDP at `epsilon`."""
    if rho == 0:
        return 0.0
    rho = max(rho, MIN_RHO)
    bounds = (_GRID - 1) * (_GRID * rho - epsilon + _LOG_OF_ONE_LESS) - _LOGS
    orders = _orders_about(int(bounds.argmin()))
    delta, _ = rdp.compute_delta(orders, [order * rho for order in orders], epsilon)
    return float(min(1.0, delta))


def _orders_about(best: int) -> tuple[float, ...]:
    """Return the few orders that decide what `dp_accounting` would certify with all of them.

    Any order gives a valid bound, so with fewer orders nothing too small is certified. The bound of a zCDP curve
    has one low point: for delta it is convex in the order, for epsilon quasiconvex. So the orders beside the best
    one allow for rounding alone. At the smallest order the library has its bound by KL divergence.
    """
    return (ORDERS[0], *ORDERS[max(1, best - NEIGHBOURS) : best + NEIGHBOURS + 1])


def epsilon_for(cost: Cost, delta: float) -> float:
    """Epsilon of `cost` at `delta`, or inf where `delta` is too small for it."""
    left = delta - cost.delta / DELTA_UNIT
    if left < 0:
        return math.inf
    return cost.epsilon / RHO_UNIT + epsilon_of_rho(cost.rho / RHO_UNIT, left)


def epsilon_of_divergence(cost: Cost, order: float, delta: float) -> float:
    """Epsilon at `delta` of what was counted at one Renyi order; inf where `delta` is too small for it.

    Args:
        cost: what was counted: its divergence and its delta are read.
        order: the Renyi order, above 1.
        delta: at which epsilon is wanted.
    """
    left = delta - cost.delta / DELTA_UNIT
    if left < 0:
        return math.inf
    return epsilon_at(cost.divergence, order, left)


def epsilon_at(divergence: int, order: float, delta: float) -> float:
    """The epsilon that `dp_accounting` certifies at `delta` for a divergence at one order.

    Args:
        divergence: in units of 10^-12.
        order: the Renyi order, above 1.
        delta: at which epsilon is wanted, above 0.
    """
    return float(rdp.compute_epsilon([order], [divergence / RHO_UNIT], delta)[0])


def largest_divergence(order: float, epsilon: float, delta: float) -> int:
    """The largest divergence at `order`, in units of 10^-12, whose epsilon at `delta` is at most `epsilon`.

    Args:
        order: the Renyi order, above 1.
        epsilon: which is not exceeded.
        delta: at which epsilon is meant, above 0.
    """
    return _largest(lambda divergence: epsilon_at(divergence, order, delta) <= epsilon)


@lru_cache(maxsize=4096)
def largest_rho(epsilon: float, delta: float) -> int:
    """Return the largest rho, in units of 10^-12, whose epsilon at `delta` is at most `epsilon`."""
    return _largest(lambda rho: epsilon_of_rho(rho / RHO_UNIT, delta) <= epsilon)


def _largest(allowed: Callable[[int], bool]) -> int:
    """Return the largest number that is allowed, where 0 is and none is beyond the first that is not."""
    low, high = 0, RHO_UNIT
    while allowed(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


def mixture_delta(mixture: BinomialMixture, epsilon: float) -> float:
    """Delta at `epsilon` of a binomial mixture of zCDP losses; what is not summed is counted as delta 1.

    Large numbers of differing draws are taken together by 1 % or so, each group at the loss of its largest number:
    delta grows with it, so the sum is never too small.
    """
    chance, trials = mixture.probability, mixture.trials
    if chance >= 1:
        return delta_of_rho(trials**2 * mixture.rho_of_one, epsilon)
    total = together = 0.0
    for differing in range(trials + 1):
        weight = math.exp(
            math.lgamma(trials + 1)
            - math.lgamma(differing + 1)
            - math.lgamma(trials - differing + 1)
            + differing * math.log(chance)
            + (trials - differing) * math.log1p(-chance)
        )
        together += weight
        ends = differing % max(1, differing // GROUPING) == 0 or differing == trials
        if ends and together > NEGLIGIBLE:
            total += together * delta_of_rho(differing**2 * mixture.rho_of_one, epsilon)
            together = 0.0
        # Beyond the mode the pmf falls at least geometrically, so a negligible term ends the sum.
        if differing > trials * chance and weight < NEGLIGIBLE:
            ratio = (trials - differing) * chance / ((differing + 1) * (1 - chance))
            together += weight * ratio / (1 - ratio)
            break
    total += together
    # The logarithms of factorials of large numbers lose absolute precision, in proportion to the number.
    return min(1.0, total * (OUTWARD + 1e-14 * trials))


def epsilon_of_curve(curve: RenyiCurve, delta: float) -> float:
    """The smallest epsilon that `dp_accounting` certifies for a Renyi curve at `delta`; inf where delta is 0."""
    if not any(curve.divergences):
        return 0.0
    if delta <= 0:
        return math.inf
    bounded = [
        (order, most) for order, most in zip(CURVE_ORDERS, curve.divergences, strict=True) if most < math.inf
    ]
    if not bounded:
        return math.inf
    orders, divergences = zip(*bounded, strict=True)
    return float(rdp.compute_epsilon(orders, divergences, delta)[0])


def event_of(parts: Iterable[PrivacyEvent]) -> tuple[dp_event.DpEvent, float, float]:
    """Return a charge's parts as one event of `dp_accounting`, and the epsilon and delta that no event can carry.

    Compose the event with an accountant that supports it, as `RdpAccountant` does. At any delta the charge means
    the accountant's epsilon at `delta` less this delta, plus this epsilon; that is what `epsilon_for` says, but
    for the rounding of fractions. A pure part is exported as what it is charged for, `epsilon^2 / 2`: randomised
    response would stand for it more tightly, but version 0.6.0's `PLDAccountant` takes that event for once when it
    is self-composed, and so would promise too much. A `ZCDpEvent` it refuses. A mixture is its pair, and so are
    tests against a public threshold.
    """
    events: list[dp_event.DpEvent] = []
    epsilon = delta = Fraction(0)
    for part in parts:
        if isinstance(part, ApproximateDpEvent | Mixture | ThresholdTests):
            epsilon, delta = epsilon + part.epsilon, delta + part.delta
        elif isinstance(part, RenyiEvent):
            raise ValueError("events: known at a Renyi order only")  # and no event says so
        elif part.times:
            rho = part.amounts()[0] / part.times
            events.append(dp_event.SelfComposedDpEvent(dp_event.ZCDpEvent(_above(rho)), part.times))
    return dp_event.ComposedDpEvent(events), _above(epsilon), _above(delta)


def _above(amount: Fraction) -> float:
    """Return the double nearest to `amount` from above, or the next one."""
    return math.nextafter(float(amount), math.inf) if amount else 0.0
