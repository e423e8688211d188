"""The auditor's own conversion of charges to (epsilon, delta), from the published theorems.

The custodian's server converts with `dp_accounting`; here the same bounds are computed a second time from what was
proven, so that an audit needs neither that library nor the server. Every order gives a valid bound, so the smallest
over any list of orders is one; the list is the server's, and the two agree but for rounding.

**Theorem** (Canonne, Kamath & Steinke 2020, Proposition 12). If `D_a(P || Q) <= r` for some order `a > 1`, then `P`
and `Q` are `(epsilon, delta)`-close with `epsilon = r + log(1 - 1/a) - log(delta a) / (a - 1)`, where that is not
negative.

**Theorem** (Bretagnolle & Huber 1979). The total variation between `P` and `Q` is at most
`sqrt(1 - exp(-D_1(P || Q)))`, so they are `(0, delta)`-close where `delta` is at least that; and `D_1 <= D_a`.

rho-zCDP says `D_a <= a rho` at every order (Bun & Steinke 2016, Definition 1.1).
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache

import numpy as np

from equipoise.accounting import DELTA_UNIT, RHO_UNIT, Cost

ORDERS = 1 + np.geomspace(0.02, 1e5, 1200)
# By how much, relatively, two computations of one bound may differ in doubles.
TOLERANCE = 1e-9


def epsilon_of(cost: Cost, delta: float, order: float | None) -> float:
    """Returns the epsilon of a total at a delta.

    Args:
        cost: the total.
        delta: the delta at which epsilon is asked for.
        order: the Renyi order at which rounds add to the total; None for what one round costs by itself.

    Returns:
        Epsilon; inf where the total's own delta is larger than `delta`.
    """
    left = delta - cost.delta / DELTA_UNIT
    if left < 0:
        return math.inf
    if order is None:
        return cost.epsilon / RHO_UNIT + _epsilon_of_rho(cost.rho / RHO_UNIT, left)
    return _epsilon_at(order, cost.divergence / RHO_UNIT, left)


def limits_of(epsilon: float, delta: float, order: float) -> tuple[float, float]:
    """Returns the limits that a cap sets on an account at a Renyi order.

    Args:
        epsilon: The cap's epsilon, above 0.
        delta: The cap's delta.
        order: The Renyi order at which the account adds, above 1.

    Returns:
        The largest divergence for which either theorem above gives the cap's epsilon at half of its delta, in nats;
        and the other half of the delta.
    """
    half = in_units(delta, DELTA_UNIT) // 2
    rest = delta - half / DELTA_UNIT
    by_order = epsilon - math.log1p(-1 / order) + math.log(rest * order) / (order - 1)
    return max(by_order, -math.log1p(-(rest**2))), half / DELTA_UNIT


def fits(total: Cost, epsilon: float, delta: float, order: float | None) -> bool:
    """Returns whether a cost stays within a cap.

    Args:
        total: The sum of the charges on the account; without an order, what one round costs by itself.
        epsilon: The cap's epsilon.
        delta: The cap's delta.
        order: The Renyi order at which the account adds; None if each of its rounds counts by itself.

    At an order both of its limits are held, each for itself, as they were fixed before any round was chosen: half
    of the cap's delta for what is lost in delta, and what the other half converts to the cap's epsilon. One round
    is a fixed mechanism, and may be converted at the order that is best for it (`docs/privacy-filter.md`).
    """
    if order is None:
        return epsilon_of(total, delta, None) <= epsilon * (1 + TOLERANCE)
    half = in_units(delta, DELTA_UNIT) // 2
    rest = delta - half / DELTA_UNIT
    return (
        total.rho == total.epsilon == 0
        and total.delta <= half
        and _epsilon_at(order, total.divergence / RHO_UNIT, rest) <= epsilon * (1 + TOLERANCE)
    )


def in_units(amount: float, unit: int) -> int:
    """Returns the whole units of `1/unit` in the decimal that prints as this float, rounded down.

    Args:
        amount: a cost, at least 0.
        unit: how many units make 1.
    """
    return int((Decimal(repr(amount)) * unit).to_integral_value(ROUND_FLOOR))


@lru_cache(maxsize=4096)
def _epsilon_of_rho(rho: float, delta: float) -> float:
    if rho == 0:
        return 0.0
    if delta <= 0:
        return math.inf
    divergences = ORDERS * rho
    if delta**2 + math.expm1(-float(divergences[0])) > 0:
        return 0.0
    bounds = divergences + np.log1p(-1 / ORDERS) - np.log(delta * ORDERS) / (ORDERS - 1)
    return max(0.0, float(bounds.min()))


def _epsilon_at(order: float, divergence: float, delta: float) -> float:
    if delta <= 0:
        return math.inf if divergence else 0.0
    if delta**2 + math.expm1(-divergence) > 0:
        return 0.0
    return max(0.0, divergence + math.log1p(-1 / order) - math.log(delta * order) / (order - 1))
