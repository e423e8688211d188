"""Charges in whole units, and how amounts become charges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

RHO_UNIT = 10**12  # rho and epsilon are charged in units of 10^-12
DELTA_UNIT = 10**18  # delta in units of 10^-18: 1/n^2 must not round to zero
OUTWARD = 1 + 1e-9


@dataclass(frozen=True)
class Cost:
    """A charge in whole units: `rho`, `epsilon` and `divergence` of 10^-12, `delta` of 10^-18.

    Means: `rho`-zCDP composed with an (`epsilon`, `delta`) pair. A plain rho has `epsilon` 0 and the small
    `delta` that truncated samplers cost. On an account that counts at a Renyi order it means: but for a
    probability of `delta`, a Renyi divergence of at most `divergence` at that order (`events.charge_at`); `rho`
    and `epsilon` are 0.
    """

    rho: int = 0
    epsilon: int = 0
    delta: int = 0
    divergence: int = 0

    def __post_init__(self) -> None:
        if min(self.rho, self.epsilon, self.delta, self.divergence) < 0:
            raise ValueError("rho, epsilon, delta and divergence must be at least 0")

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.rho + other.rho,
            self.epsilon + other.epsilon,
            self.delta + other.delta,
            self.divergence + other.divergence,
        )


def rounded_up(amount: float | Fraction, unit: int) -> int:
    """Returns an amount in whole units of `1/unit`, rounded up.

    Args:
        amount: rho, epsilon, delta or a divergence, not in units.
        unit: `RHO_UNIT` or `DELTA_UNIT`.

    Raises:
        ValueError: the amount is negative, infinite or NaN.

    Example:
        >>> from fractions import Fraction
        >>> from equipoise.accounting.cost import RHO_UNIT, rounded_up
        >>> rounded_up(Fraction(1, 3), RHO_UNIT)
        333333333334
    """
    if not (0 <= amount < math.inf):
        raise ValueError(f"a cost must be finite and not negative, not {amount}")
    return math.ceil(Fraction(amount) * unit)


def float_above(amount: Fraction) -> float:
    """Returns the next double that is not below `amount`; above 0 where `amount` is.

    Raises `OverflowError` beyond them.
    """
    nearest = float(amount)
    return nearest if nearest >= amount else math.nextafter(nearest, math.inf)
