"""How the data's budget is divided among the tables, once the noisy demand is known. All in integers and fractions.

The error of a table measured at `rho` is proportional to `rho^(-1/2)`. The rhos that minimise the sum of demand
times error are proportional to demand^(2/3) (set the derivative of `sum d rho^(-1/2) + c sum rho` to zero); with a
floor for some tables, these get the floor wherever the proportional part lies below it, and the others share the
rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

ROOT_BITS = 32  # powers of the demand are rounded down to units of 2^-32


def shares_of(demand: Sequence[int], least: int, always: Sequence[bool], floor: Fraction) -> list[Fraction]:
    """Return the part of the budget that each table gets; 0: it is not measured. They sum to at most 1.

    `demand`: noisy counts. `always`: tables measured whatever the demand, each with a part of at least `floor`;
    another one is measured only where its demand exceeds `least`. The floor is above 0, and the floors of all
    tables that are always measured add up to at most 1; so the loop never takes every table to its floor, as the
    parts of those that are left sum to what is left, which is enough for their floors.

    Args:
        demand: noisy counts of votes, one for each table.
        least: the demand from which on a table is measured.
        always: whether a table is measured whatever its demand, one for each.
        floor: the least part of a table that is always measured.
    """
    wanted = [two_thirds(count) if kept or count > least else 0 for count, kept in zip(demand, always, strict=True)]
    if not any(wanted):
        return equal_parts(always)
    floored: set[int] = set()
    while True:
        rest = 1 - floor * len(floored)
        total = sum(weight for place, weight in enumerate(wanted) if place not in floored)
        # Taking one more table to its floor leaves the others less, so more may fall below theirs.
        below = {
            place
            for place, weight in enumerate(wanted)
            if always[place] and place not in floored and rest * weight < floor * total
        }
        if not below:
            return [floor if place in floored else rest * weight / total for place, weight in enumerate(wanted)]
        floored |= below


def equal_parts(always: Sequence[bool]) -> list[Fraction]:
    """Equal parts for the tables that are always measured."""
    return [Fraction(1, sum(always)) if kept else Fraction(0) for kept in always]


def two_thirds(count: int) -> int:
    """`count^(2/3)` in units of 2^-32, rounded down; 0 where noise made the count negative."""
    return cube_root(max(0, count) ** 2 << 3 * ROOT_BITS)


def cube_root(number: int) -> int:
    """Return the largest integer whose cube is at most `number`, by Newton's iteration from above."""
    root = 1 << -(-number.bit_length() // 3)
    while number:
        lower = (2 * root + number // (root * root)) // 3
        if lower >= root:
            return root
        root = lower
    return 0
