"""What a budget allows: its rho and epsilons on their grids, and what the samplers' truncation takes of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from equipoise.accounting import (
    DELTA_UNIT,
    OUTWARD,
    ApproximateDpEvent,
    PrivacyEvent,
    PureDpEvent,
    ThresholdTests,
    ZcdpEvent,
)
from equipoise.model.accounts import Budget
from equipoise_server.conversion import largest_rho

MIN_EPSILON = Fraction(1, 10**8)  # below it noise would be coarser than what its sampler draws
EPSILON_BITS = 40  # epsilons are rounded down to units of 2^-40


def usable_delta(budget: Budget) -> float:
    """`delta` less a little, kept for the truncation of the samplers: a millionth of it, at least 4 units."""
    return budget.delta - max(budget.delta * 2.0**-20, 4 / DELTA_UNIT)


def usable_rho(budget: Budget) -> int:
    """Return the largest rho, in units of 10^-12, that `budget` allows."""
    delta = usable_delta(budget)
    return largest_rho(budget.epsilon, delta) if delta > 0 else 0


def epsilon_within(rho: Fraction) -> Fraction:
    """Return the largest epsilon on the grid with `epsilon^2 / 2 <= rho`."""
    return Fraction(math.isqrt(int(2 * rho * 4**EPSILON_BITS)), 2**EPSILON_BITS)


def sampler_delta(total_variation: Fraction, epsilon: float, parts: Iterable[PrivacyEvent]) -> Fraction:
    """Delta that cutting samplers costs beside `parts`: `1 + e^s` times the total variation from the ideal laws.

    `s` is the largest epsilon of a step whose samplers are cut (`docs/privacy-filter.md`, the lemma on truncation).
    The budget's `epsilon` may be below that where its delta is not small beside it, as that converts much rho.
    """
    return total_variation * math.ceil(1 + math.exp(max([epsilon, *map(step_epsilon, parts)])))


def with_samplers(
    parts: Sequence[PrivacyEvent], total_variation: Fraction, epsilon: float, beyond: Fraction = Fraction(0)
) -> list[PrivacyEvent]:
    """Add to a cost's parts the delta of its samplers' truncation.

    Args:
        parts: what the mechanism costs with ideal samplers.
        total_variation: of all samplers of these parts together from their ideal laws.
        epsilon: of the budget that is charged.
        beyond: a further delta, such as that of a hard cap which may be met.

    Returns:
        The parts, and one more of epsilon 0, which is called "samplers".
    """
    slack = sampler_delta(total_variation, epsilon, parts)
    return [*parts, ApproximateDpEvent("samplers", Fraction(0), slack + beyond)]


def step_epsilon(part: PrivacyEvent) -> float:
    """At least the epsilon of every step that a part is charged for and whose samplers may be cut.

    A step that is charged in zCDP has range `s` and costs `s^2 / 8`, or more. Mixtures are drawn exactly.
    """
    match part:
        case ZcdpEvent():
            return math.sqrt(8 * part.rho) * OUTWARD
        case PureDpEvent() | ApproximateDpEvent():
            return float(part.epsilon) * OUTWARD
        case ThresholdTests():
            return float(part.test_epsilon) * OUTWARD
        case _:
            return 0.0
