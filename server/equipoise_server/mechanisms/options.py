"""Reading a plan's forced options, and rounding its epsilons down to their grid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

EPSILON_BITS = 40  # repair's epsilons are rounded down to units of 2^-40


def epsilon_within(rho: Fraction) -> Fraction:
    """The largest epsilon on the grid with `epsilon^2 / 2 <= rho`."""
    return Fraction(math.isqrt(int(2 * rho * 4**EPSILON_BITS)), 2**EPSILON_BITS)


def whole(options: Mapping[str, object], name: str, default: int) -> int:
    """The forced whole number called `name`, or the default."""
    value = options.get(name, default)
    return int(value) if isinstance(value, int | float) else default


def real(options: Mapping[str, object], name: str, default: float) -> float:
    """The forced real number called `name`, or the default."""
    value = options.get(name, default)
    return float(value) if isinstance(value, int | float) else default
