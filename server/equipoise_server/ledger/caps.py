"""The cap of an account: an (epsilon, delta) pair, its limits in whole units, and which costs fit under it.

An account's way of counting is fixed when the account is opened. `docs/privacy-filter.md` has the proofs, their
sources, and the reason why no limit is traded for another after results were seen.

**Accounts to which rounds add** have a Renyi order `a`, a limit `D` of divergence and a limit `Delta` of delta, all
three public and fixed before the first round. **Theorem 1.** Let rounds be chosen one after another, each after
seeing all results before it, and let round `k` have laws on two neighbours that are nowhere below `h_k P_k` and
`h_k Q_k`, for an `h_k` of its results with a mean of at least `1 - delta_k`, where `D_a(P_k || Q_k) <= d_k`. If on
every course of events `sum d_k <= D` and `sum delta_k <= Delta`, all results together are `(epsilon, delta)`-DP
whenever `D_a <= D` alone implies `(epsilon, delta - Delta)`-DP. So rho counts `a rho`, and a pair `(e, d)` counts
`min(e, a e^2 / 2)` and `d` (`equipoise.accounting.charge_at`).

**Accounts where the worst round counts** have no order. **Theorem 2.** Where what is protected lives in one round,
what that round costs was fixed before it, and the analyst's other statements were not chosen by its own answers,
all results together are as private as that round is alone. So each round is converted by itself, at its best order.

`Delta` is half of the cap's delta, and `D` the largest divergence that `dp_accounting` converts, at `a` and the
other half, to the cap's epsilon. Both limits are whole units, and each is checked by itself. (A limit that depended
on what is left of the other would be chosen after results were seen.)
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from decimal import ROUND_FLOOR, Decimal
from enum import StrEnum
from functools import lru_cache

from equipoise.accounting import DELTA_UNIT, ORDERS, OUTWARD, RHO_UNIT, Cost
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import AccountCharge, Budget, Counted, counted_digits, left_digits
from equipoise_server.conversion import (
    epsilon_for,
    epsilon_of_divergence,
    epsilon_of_rho,
    largest_divergence,
    largest_rho,
)

MAX_EPSILON = 1e6  # so that all that a cap allows is below `MAX_AMOUNT`
MAX_AMOUNT = 2**63 - 1  # of a signed 64-bit column
MIN_ROOM = 1 / 100  # of a cap's epsilon must be left for divergences at an order


class Composition(StrEnum):
    """How the charges of several rounds compose on an account."""

    SEQUENTIAL = "sum"  # every round adds
    PARALLEL = "worst"  # every protected unit lives in one round, so only the worst round counts


@dataclass(frozen=True)
class Cap:
    """The (epsilon, delta) that an account must satisfy, and the Renyi order at which it counts its rounds.

    `order` is None where rounds do not add: each round is then converted by itself.
    """

    epsilon: float
    delta: float
    order: float | None = None


def checked_cap(field: str, epsilon: float, delta: float) -> Cap:
    """Return a cap without an order. Raises `InvalidArgument` (`field`) where `epsilon` or `delta` is wrong."""
    if not (math.isfinite(epsilon) and 0 < epsilon <= MAX_EPSILON):
        raise InvalidArgument(f"{field}.epsilon", f"must be above 0 and at most {MAX_EPSILON:.0f}")
    if not 0 < delta < 1:
        raise InvalidArgument(f"{field}.delta", "must be above 0 and below 1")
    return Cap(epsilon, delta)


def at_order(field: str, cap: Cap, order: float = 0) -> Cap:
    """Return the cap counted at a Renyi order.

    Args:
        field: the name that an error gives to the caller's field.
        cap: the epsilon and delta.
        order: the order; 0 stands for `usual_order`.

    Raises:
        InvalidArgument: no curve is known at the order, or its conversion takes nearly all of the cap's epsilon.
    """
    if order and not ORDERS[0] <= order <= ORDERS[-1]:
        raise InvalidArgument(field, f"must lie between {ORDERS[0]} and {ORDERS[-1]:.0f}")
    counting = Cap(cap.epsilon, cap.delta, order or usual_order(cap))
    if _leaves_room(counting):
        return counting
    usual = usual_order(cap)
    if _leaves_room(Cap(cap.epsilon, cap.delta, usual)):
        advice = f"the usual order for this cap is {usual:g}, which 0 stands for"
        raise InvalidArgument(field, f"converting at order {order:g} takes all of the cap; {advice}")
    raise InvalidArgument(field, "converting at any order takes all of the cap, which is too small")


def _leaves_room(cap: Cap) -> bool:
    """Return whether an order's conversion leaves some of the cap's epsilon for divergences."""
    return limits(cap).divergence >= MIN_ROOM * cap.epsilon * RHO_UNIT


def usual_order(cap: Cap) -> float:
    """Return the order at which a cap allows the most zCDP: the largest limit for each unit of `D_a = a rho`."""
    return max(ORDERS, key=lambda order: limits(Cap(cap.epsilon, cap.delta, order)).divergence / order)


@lru_cache(maxsize=4096)
def limits(cap: Cap) -> Cost:
    """Return the largest amounts that each by itself stays within the cap, rounded down.

    With an order, the limits of divergence and of delta also stay within the cap together.
    """
    if cap.order is not None:
        half = _rounded_down(cap.delta, DELTA_UNIT) // 2
        # Both are reduced by far more than the rounding error of the conversion.
        epsilon, delta = cap.epsilon / OUTWARD, (cap.delta - half / DELTA_UNIT) / OUTWARD
        return Cost(delta=half, divergence=largest_divergence(cap.order, epsilon, delta))
    return Cost(
        rho=largest_rho(cap.epsilon, cap.delta),
        epsilon=_rounded_down(cap.epsilon, RHO_UNIT),
        delta=_rounded_down(cap.delta, DELTA_UNIT),
    )


def fits(total: Cost, cap: Cap, limit: Cost) -> bool:
    """Return whether a total fits: within each limit, and within the cap's epsilon after conversion.

    `total` is the account's total at the cap's order; without an order, the cost of one round. The conversion is
    needed besides the limits, because the parts of one round compose.
    """
    return (
        total.rho <= limit.rho
        and total.epsilon <= limit.epsilon
        and total.delta <= limit.delta
        and total.divergence <= limit.divergence
        and epsilon_under(cap, total) <= cap.epsilon
    )


def epsilon_under(cap: Cap, total: Cost) -> float:
    """Return the epsilon of a total at the cap's delta; inf where that delta is too small.

    `total` is as for `fits`.
    """
    if cap.order is None:
        return epsilon_for(total, cap.delta)
    return epsilon_of_divergence(total, cap.order, cap.delta)


def counted(cap: Cap, total: Cost) -> Counted:
    """Return how much of both limits a total takes, and the limits themselves; empty without an order."""
    if cap.order is None:
        return Counted()
    limit = limits(cap)
    return Counted(
        order=cap.order,
        divergence=total.divergence / RHO_UNIT,
        max_divergence=limit.divergence / RHO_UNIT,
        delta=total.delta / DELTA_UNIT,
        max_delta=limit.delta / DELTA_UNIT,
    )


def pair_of(cap: Cap, total: Cost) -> Budget:
    """Return an amount as a pair at the cap's delta; the zero amount is the pair (0, 0)."""
    return Budget(epsilon_under(cap, total), cap.delta) if total != Cost() else Budget(0.0, 0.0)


def account_charge(account: str, cap: Cap, cost: Cost, refusal: str = "") -> AccountCharge:
    """Return what one round counts on `account`, beside the account's cap and limits.

    `refusal`: why the round does not fit; empty where it fits.
    """
    counts = counted(cap, cost)
    return AccountCharge(
        account,
        Budget(cap.epsilon, cap.delta),
        pair_of(cap, cost),
        refusal,
        order=counts.order,
        divergence=counts.divergence,
        max_divergence=counts.max_divergence,
        delta=counts.delta,
        max_delta=counts.max_delta,
    )


def no_room_in_words(cap: Cap, committed: Cost, cost: Cost) -> str:
    """Say why a round does not fit: the limit it exceeds, what it and the account count, what fits, what to do."""
    held_to = f"the cap of epsilon {cap.epsilon:g} at delta {cap.delta:g}"
    if cap.order is None:
        reached = counted_digits(epsilon_under(cap, cost))
        return (
            "no budget for this round: only the worst round counts, and by itself this one costs epsilon "
            f"{reached} at delta {cap.delta:g}, beyond {held_to}. Plan a round that costs less, or raise the cap"
        )
    left = _remaining(cap, committed)
    divergence, delta = left.divergence / RHO_UNIT, left.delta / DELTA_UNIT
    beyond, advice = [], []
    if cost.divergence > left.divergence:
        beyond.append("the limit of divergence")
        in_zcdp = epsilon_of_rho(divergence / cap.order, cap.delta)
        advice.append(
            f"of less epsilon (charged in zCDP up to {left_digits(in_zcdp)} at delta {cap.delta:g}, "
            f"pure up to {left_digits(max(divergence, math.sqrt(2 * divergence / cap.order)))})"
        )
    if cost.delta > left.delta:
        beyond.append("the limit of delta")
        advice.append("that charges less delta")
    counting = counted_digits(cost.divergence / RHO_UNIT), counted_digits(cost.delta / DELTA_UNIT)
    fitting = f"divergence {left_digits(divergence)}, delta {left_digits(delta)}"
    return (
        f"no budget left for this round: it exceeds {' and '.join(beyond) or held_to}. It would count "
        f"divergence {counting[0]}, delta {counting[1]}. "
        f"Counted already: {counted(cap, committed).in_words}. Still fits: {fitting}. "
        f"Plan a round {' and '.join(advice) or 'that costs less'}, or raise {held_to}"
    )


def _remaining(cap: Cap, committed: Cost) -> Cost:
    """Return what is left of both limits; zero where a write-off exceeded a limit."""
    limit = limits(cap)
    return Cost(
        delta=max(0, limit.delta - committed.delta), divergence=max(0, limit.divergence - committed.divergence)
    )


def worst(costs: list[Cost], cap: Cap) -> Cost:
    """Return the cost with the largest epsilon at the cap's delta; the zero cost where `costs` is empty."""
    return max(
        costs,
        key=lambda cost: (epsilon_under(cap, cost), cost.delta, cost.rho, cost.epsilon, cost.divergence),
        default=Cost(),
    )


def combined(costs: list[Cost], composition: Composition, cap: Cap) -> Cost:
    """Return the total of several costs on an account: the worst of them, or their sum."""
    return worst(costs, cap) if composition is Composition.PARALLEL else saturated(sum(costs, Cost()))


def saturated(cost: Cost) -> Cost:
    """Cut every amount to `MAX_AMOUNT`. No cap allows so much, so nothing fits beside an amount that was cut."""
    return Cost(*(min(amount, MAX_AMOUNT) for amount in astuple(cost)))


def _rounded_down(amount: float, unit: int) -> int:
    """Return the whole units of the decimal as it was written: 1e-6 is 10^12 units of 10^-18, not one less."""
    return int((Decimal(repr(amount)) * unit).to_integral_value(ROUND_FLOOR))
