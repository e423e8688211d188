"""How much an account may hold: a cap as a pair, its limits in whole units, and what fits under it.

An account counts in one of two ways, fixed and public from its opening on: rhos beside pairs, or divergences at one
Renyi order. To choose between them, or among orders, after results were seen is not known to be sound.

**Theorem** (accounts of a Renyi order `a`). Let rounds follow one another, each chosen after seeing all results
before it, and let round `k` be a mechanism whose laws on two neighbours are `(1 - delta_k) P_k + delta_k P_k'` and
`(1 - delta_k) Q_k + delta_k Q_k'` with `D_a(P_k || Q_k) <= d_k`. If on every course of events `sum d_k <= D` and
`sum delta_k <= Delta`, with `a`, `D` and `Delta` fixed beforehand, then all results together are
`(epsilon, delta)`-DP whenever `D_a <= D` alone implies `(epsilon, delta - Delta)`-DP.

*Proof.* Let `P`, `Q` be the joint laws that the good parts make, and `X = dP/dQ` after the last round. Under `Q`,
`X_k^a exp(-(a - 1) (d_1 + ... + d_k))` is a supermartingale: given the past `d_k` is known, and the last factor's
mean is at most 1. As the `d_k` never exceed `D` together, `D_a(P || Q) <= D` (this is the theorem behind the Renyi
filter of Feldman & Zrnic 2021). A course of events is made of good parts only with probability `w = product
(1 - delta_k)`, which is at least `1 - Delta`. So an event has probability at most `Delta` plus the integral of
`w dP` over it for one neighbour, and at least the integral of `w dQ` for the other. As `0 <= w <= 1`, the former
less `e^epsilon` times the latter is at most `Delta` plus the mean under `Q` of the positive part of
`X - e^epsilon`; and that mean is at most `delta - Delta`.

A reservation counts from the moment its round's workloads are fixed, so rounds that overlap follow one another by
their reservations. On an account of worst rounds each round is such a course by itself.

`Delta` is half of the cap's delta, and `D` the largest divergence that `dp_accounting` converts, at `a` and the
other half, to the cap's epsilon: two limits in whole units, each held for itself. (A limit that moves with what is
left of the other would be a choice after the fact.) What one charge counts: `equipoise.accounting.charge_at`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from enum import StrEnum
from fractions import Fraction

from equipoise.accounting import (
    DELTA_UNIT,
    ORDERS,
    OUTWARD,
    RHO_UNIT,
    ApproximateDpEvent,
    Cost,
    PrivacyEvent,
    RenyiEvent,
    ZcdpEvent,
    charge_at,
    charge_of,
)
from equipoise.errors import InvalidArgument
from equipoise_server.conversion import (
    epsilon_at,
    epsilon_for,
    epsilon_of_divergence,
    largest_divergence,
    largest_rho,
)

MAX_EPSILON = 1e6  # so that every amount and sum fits a signed 64-bit column
MIN_ROOM = 1 / 100  # of a cap's epsilon must be left for divergences at an order


class Composition(StrEnum):
    """How the charges of several rounds make up an account."""

    SEQUENTIAL = "sum"  # every round adds
    PARALLEL = "worst"  # every protected unit lives in one round, so only the worst round counts


@dataclass(frozen=True)
class Cap:
    """The (epsilon, delta) that an account's total must satisfy, and the Renyi order at which the total is counted.

    `order` None: rhos and pairs are counted.
    """

    epsilon: float
    delta: float
    order: float | None = None


def checked_cap(field: str, epsilon: float, delta: float) -> Cap:
    """A cap. Raises `InvalidArgument(field, ...)` for numbers that cannot be one."""
    if not (math.isfinite(epsilon) and 0 < epsilon <= MAX_EPSILON):
        raise InvalidArgument(f"{field}.epsilon", f"must be above 0 and at most {MAX_EPSILON:.0f}")
    if not 0 < delta < 1:
        raise InvalidArgument(f"{field}.delta", "must be above 0 and below 1")
    return Cap(epsilon, delta)


def at_order(field: str, cap: Cap, order: float) -> Cap:
    """The cap counted at a Renyi order; 0 stands for `usual_order`. Raises `InvalidArgument(field, ...)`.

    Refused are orders beyond those that curves are known at, and those whose conversion takes nearly the whole cap.
    """
    if order and not ORDERS[0] <= order <= ORDERS[-1]:
        raise InvalidArgument(field, f"must lie between {ORDERS[0]} and {ORDERS[-1]:.0f}")
    counted = Cap(cap.epsilon, cap.delta, order or usual_order(cap))
    if limits(counted).divergence < MIN_ROOM * cap.epsilon * RHO_UNIT:
        tried = f"order {order:g}" if order else "any order"
        raise InvalidArgument(field, f"converting at {tried} takes all of the cap")
    return counted


def usual_order(cap: Cap) -> float:
    """The order at which a cap allows the most zCDP: the largest limit for each unit of `D_a = a rho`."""
    return max(ORDERS, key=lambda order: limits(Cap(cap.epsilon, cap.delta, order)).divergence / order)


def limits(cap: Cap) -> Cost:
    """The largest amounts that each alone stay within the cap, rounded down; at an order also both together."""
    if cap.order is not None:
        half = _rounded_down(cap.delta, DELTA_UNIT) // 2
        # Both pushed inward, far more than the conversion's doubles can err.
        epsilon, delta = cap.epsilon / OUTWARD, (cap.delta - half / DELTA_UNIT) / OUTWARD
        return Cost(delta=half, divergence=largest_divergence(cap.order, epsilon, delta))
    return Cost(
        rho=largest_rho(cap.epsilon, cap.delta),
        epsilon=_rounded_down(cap.epsilon, RHO_UNIT),
        delta=_rounded_down(cap.delta, DELTA_UNIT),
    )


def fits(total: Cost, cap: Cap, limit: Cost) -> bool:
    """Whether a total stays within the cap, part by part in whole units and converted as one."""
    return (
        total.rho <= limit.rho
        and total.epsilon <= limit.epsilon
        and total.delta <= limit.delta
        and total.divergence <= limit.divergence
        and epsilon_under(cap, total) <= cap.epsilon
    )


def epsilon_under(cap: Cap, total: Cost) -> float:
    """Epsilon of a total at the cap's delta, or inf where that is too small for it."""
    if cap.order is None:
        return epsilon_for(total, cap.delta)
    return epsilon_of_divergence(total, cap.order, cap.delta)


def worst(costs: list[Cost], cap: Cap) -> Cost:
    """The cost with the largest epsilon at the cap's delta; nothing where there is none."""
    return max(
        costs,
        key=lambda cost: (epsilon_under(cap, cost), cost.delta, cost.rho, cost.epsilon, cost.divergence),
        default=Cost(),
    )


def combined(costs: list[Cost], composition: Composition, cap: Cap) -> Cost:
    """What several costs make up on an account."""
    return worst(costs, cap) if composition is Composition.PARALLEL else sum(costs, Cost())


def recounted(cost: Cost, order: float | None, cap: Cap) -> Cost:
    """A cost that was counted at `order` (None: as rhos and pairs), as an account under `cap` counts it.

    Where its order is too small for that, or there shall be pairs, it is a pair at a quarter of the cap's delta.
    """
    if order == cap.order:
        return cost
    delta = Fraction(cost.delta, DELTA_UNIT)
    parts: list[PrivacyEvent] = [
        ZcdpEvent("recounted", Fraction(cost.rho, RHO_UNIT)),
        ApproximateDpEvent("recounted", Fraction(cost.epsilon, RHO_UNIT), delta),
    ]
    if order is not None and cap.order is not None and cap.order < order:
        parts.append(RenyiEvent("recounted", Fraction(order), Fraction(cost.divergence, RHO_UNIT)))
    elif order is not None and cost.divergence:
        epsilon = Fraction(epsilon_at(cost.divergence, order, cap.delta / 4 / OUTWARD) * OUTWARD)
        parts.append(ApproximateDpEvent("recounted", epsilon, Fraction(cap.delta / 4)))
    return charge_of(parts) if cap.order is None else charge_at(parts, cap.order)


def _rounded_down(amount: float, unit: int) -> int:
    """Whole units of the decimal that the operator wrote: 1e-6 is 10^12 units of 10^-18, not one less."""
    return int((Decimal(repr(amount)) * unit).to_integral_value(ROUND_FLOOR))
