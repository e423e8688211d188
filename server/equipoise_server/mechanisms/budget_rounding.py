"""What a budget allows: its rho and epsilons on their grids, and what the samplers' truncation takes of it."""

from __future__ import annotations

import math
from fractions import Fraction

from equipoise.accounting import DELTA_UNIT
from equipoise.model.accounts import Budget
from equipoise_server.conversion import largest_rho

MIN_EPSILON = Fraction(1, 10**8)  # below it noise would be coarser than what its sampler draws
EPSILON_BITS = 40  # epsilons are rounded down to units of 2^-40


def usable_delta(budget: Budget) -> float:
    """`delta` less a little, kept for the truncation of the samplers: a millionth of it, at least 4 units."""
    return budget.delta - max(budget.delta * 2.0**-20, 4 / DELTA_UNIT)


def usable_rho(budget: Budget) -> int:
    """The largest rho, in units of 10^-12, that `budget` allows."""
    delta = usable_delta(budget)
    return largest_rho(budget.epsilon, delta) if delta > 0 else 0


def epsilon_within(rho: Fraction) -> Fraction:
    """The largest epsilon on the grid with `epsilon^2 / 2 <= rho`."""
    return Fraction(math.isqrt(int(2 * rho * 4**EPSILON_BITS)), 2**EPSILON_BITS)


def sampler_delta(total_variation: Fraction, epsilon: float) -> Fraction:
    """Delta that a total-variation slack costs, as it is met on both sides: (1 + e^epsilon) times it."""
    return total_variation * math.ceil(1 + math.exp(epsilon))
