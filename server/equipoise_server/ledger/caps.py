"""How much an account may hold: a cap as a pair, its limits in whole units, and what fits under it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from enum import StrEnum

from equipoise.accounting import DELTA_UNIT, RHO_UNIT, Cost
from equipoise.errors import InvalidArgument
from equipoise_server.ledger.conversion import epsilon_for, largest_rho

LARGEST_EPSILON = 1e6  # so that every amount and sum fits a signed 64-bit column


class Composition(StrEnum):
    """How the charges of several rounds make up an account."""

    SUM = "sum"  # every round adds
    WORST = "worst"  # every protected unit lives in one round, so only the worst round counts


@dataclass(frozen=True)
class Cap:
    """The (epsilon, delta) that an account's total must satisfy."""

    epsilon: float
    delta: float


def checked_cap(field: str, epsilon: float, delta: float) -> Cap:
    """A cap. Raises `InvalidArgument(field, ...)` for numbers that cannot be one."""
    if not (math.isfinite(epsilon) and 0 < epsilon <= LARGEST_EPSILON):
        raise InvalidArgument(f"{field}.epsilon", f"must be above 0 and at most {LARGEST_EPSILON:.0f}")
    if not 0 < delta < 1:
        raise InvalidArgument(f"{field}.delta", "must be above 0 and below 1")
    return Cap(epsilon, delta)


def limits(cap: Cap) -> Cost:
    """The largest rho, epsilon and delta that each alone stays within the cap; rounded down."""
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
        and epsilon_for(total, cap.delta) <= cap.epsilon
    )


def worst(costs: list[Cost], cap: Cap) -> Cost:
    """The cost with the largest epsilon at the cap's delta; nothing where there is none."""
    return max(
        costs,
        key=lambda cost: (epsilon_for(cost, cap.delta), cost.delta, cost.rho, cost.epsilon),
        default=Cost(),
    )


def _rounded_down(amount: float, unit: int) -> int:
    """Whole units of the decimal that the operator wrote: 1e-6 is 10^12 units of 10^-18, not one less."""
    return int((Decimal(repr(amount)) * unit).to_integral_value(ROUND_FLOOR))
