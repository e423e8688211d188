"""Checks of a charge's parts: that they come to the charge, and that a reduction only makes a rho smaller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from equipoise.accounting import RHO_UNIT, Cost, PrivacyEvent, ZcdpEvent, charge_at, charge_of, events_from_json
from equipoise.verification.pairs import pairs_hold

# By how much a Renyi curve may come out differently on another machine: less than was added to it.
ROUNDING = 1e-9


def is_part_of(spent: Sequence[PrivacyEvent], planned: Sequence[PrivacyEvent]) -> bool:
    """Returns whether a grant that was planned with some parts may be reduced to others, or to none.

    A grant has one part, in zCDP, of which its filter has spent some (`accounting.privacy_filter`).

    Args:
        spent: the parts that still count.
        planned: the parts that were reserved.

    Raises:
        ValueError: either are several.
    """
    (whole,) = planned
    if not spent:
        return True
    (some,) = spent
    if not isinstance(whole, ZcdpEvent) or not isinstance(some, ZcdpEvent):
        return False
    return some.rho < whole.rho and some == replace(whole, rho=some.rho)


def is_spent(parts: Sequence[PrivacyEvent], spent: int) -> bool:
    """Returns whether a charge is what a grant's statements came to.

    Args:
        parts: the privacy events of the charge on the data account, of which there are none if nothing was spent.
        spent: what the statements came to, in units of 10^-12 of rho.
    """
    if not parts:
        return spent == 0
    return len(parts) == 1 and isinstance(parts[0], ZcdpEvent) and parts[0].rho == Fraction(spent, RHO_UNIT)


def is_cost_of(parts: tuple[PrivacyEvent, ...], cost: Cost, order: float | None) -> bool:
    """Returns whether a charge is what its parts come to.

    A pair that stands for what a part is made of must follow from that, too.

    Args:
        parts: the privacy events of the charge.
        cost: what was charged.
        order: the Renyi order at which the account adds; None if the charge is one round's cost by itself.
    """
    if not pairs_hold(parts):
        return False
    if order is None:
        return charge_of(parts) == cost
    made = charge_at(parts, order)
    near = abs(made.divergence - cost.divergence) <= ROUNDING * made.divergence + 1
    return near and replace(made, divergence=cost.divergence) == cost


def is_cost_of_events(events: str, cost: Cost, order: float | None) -> bool:
    """Returns whether a charge is what the events of a journal entry or a plan come to.

    Args:
        events: the events as JSON; False for what cannot be read.
        cost: what was charged.
        order: as of `is_cost_of`.
    """
    try:
        return is_cost_of(events_from_json(events), cost, order)
    except (ValueError, ArithmeticError):
        return False
