"""The rho and the epsilons that a budget allows, rounded to their grids, and the delta of truncated samplers."""

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

SAMPLERS = "samplers"  # the name of the event that truncated samplers are charged as
MIN_EPSILON = Fraction(1, 10**8)  # below it the noise would be coarser than its sampler can draw
EPSILON_BITS = 40  # epsilons are rounded down to units of 2^-40


def usable_delta(budget: Budget) -> float:
    """Return delta without the part reserved for truncated samplers: `2^-20` of it, at least 4 units of 10^-18."""
    return budget.delta - max(budget.delta * 2.0**-20, 4 / DELTA_UNIT)


def usable_rho(budget: Budget) -> int:
    """Return the largest rho, in units of 10^-12, that `budget` allows."""
    delta = usable_delta(budget)
    return largest_rho(budget.epsilon, delta) if delta > 0 else 0


def epsilon_within(rho: Fraction) -> Fraction:
    """Return the largest epsilon on the grid with `epsilon^2 / 2 <= rho`."""
    return Fraction(math.isqrt(int(2 * rho * 4**EPSILON_BITS)), 2**EPSILON_BITS)


def sampler_delta(total_variation: Fraction, epsilon: float, parts: Iterable[PrivacyEvent]) -> Fraction:
    """Return the delta of truncated samplers: `1 + e^s` times their total variation from the ideal distributions.

    `s` is the largest epsilon of any step with a truncated sampler (`docs/privacy-filter.md`, the lemma on
    truncation). The budget's `epsilon` may be smaller than `s` where its delta is large, because such a delta
    allows much rho.

    Args:
        total_variation: of all samplers together from their ideal distributions.
        epsilon: of the budget.
        parts: the privacy events with ideal samplers.
    """
    return total_variation * math.ceil(1 + math.exp(max([epsilon, *map(step_epsilon, parts)])))


def with_samplers(
    parts: Sequence[PrivacyEvent], total_variation: Fraction, epsilon: float, beyond: Fraction = Fraction(0)
) -> list[PrivacyEvent]:
    """Add the delta of truncated samplers to a list of privacy events.

    Args:
        parts: the events of the mechanism with ideal samplers.
        total_variation: of all samplers of these events together from their ideal distributions.
        epsilon: of the budget that is charged.
        beyond: a further delta, such as that of a hard cap which may be met.

    Returns:
        The events, and one more event of epsilon 0 with the name `SAMPLERS`.
    """
    slack = sampler_delta(total_variation, epsilon, parts)
    return [*parts, ApproximateDpEvent(SAMPLERS, Fraction(0), slack + beyond)]


def step_epsilon(part: PrivacyEvent) -> float:
    """Return an upper bound on the epsilon of every step with a truncated sampler that an event is charged for.

    A step that is charged in zCDP has range `s` and costs at least `s^2 / 8`. Mixtures are drawn exactly.
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
