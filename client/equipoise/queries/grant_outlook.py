"""What a grant of some size would give, before it is given: from public facts alone.

All whole marginals have the same error for the same price, whatever the number of their cells. So what a grant is
worth is said by how many statements share it. What earlier answers tell, and what a standing measurement tells,
comes on top: answers err by no more than what is said here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from equipoise.accounting import RHO_UNIT
from equipoise.queries.grant_reach import PaidNoise, paid_reach

SHARED_BY = (1, 10, 100, 1000)  # statements
CELLS = 100  # of the marginal whose intervals are said
MOVED = {"condition": 1, "marginal": 2}  # the square of the L2 norm by which one replaced record moves the counts


@dataclass(frozen=True)
class Outlook:
    """What each of so many statements gets where they share a grant evenly, and none tells of another.

    Attributes:
        statements: how many share it.
        rho: what each of them costs, in units of 10^-12.
        condition_error: the standard error of a condition's count, in records.
        condition_half_width: how far the interval of the last of them reaches to either side, in records.
        marginal_error: the standard error of each count of a marginal, in records.
        marginal_half_width: the same of the last of them, of 100 cells.
    """

    statements: int
    rho: int
    condition_error: float
    condition_half_width: float
    marginal_error: float
    marginal_half_width: float


def outlooks(total: int, person_records: int, beta: float) -> tuple[Outlook, ...]:
    """Return what a grant gives to 1, 10, 100 and 1,000 statements, as far as it is enough for so many.

    Args:
        total: what all statements may cost together, in units of 10^-12 of rho.
        person_records: how many records each person has, M.
        beta: the probability that any interval of the grant fails.
    """
    found = []
    for statements in SHARED_BY:
        if not (rho := total // statements):
            break
        condition, condition_reach = _errors(MOVED["condition"], 1, statements, rho, person_records, beta)
        marginal, marginal_reach = _errors(MOVED["marginal"], CELLS, statements, rho, person_records, beta)
        found.append(Outlook(statements, rho, condition, condition_reach, marginal, marginal_reach))
    return tuple(found)


def combined_error(measured: float, paid: float) -> float:
    """Return the standard error of a count that a measurement and noise that was paid for tell together.

    Args:
        measured: by the measurement alone, in records.
        paid: by the noise alone, in records, above 0.
    """
    return measured * paid / math.hypot(measured, paid)


def _errors(moved: int, cells: int, place: int, rho: int, person_records: int, beta: float) -> tuple[float, float]:
    """Return the standard error of a count, in records, and how far its interval reaches at this place."""
    precision = Fraction(rho, moved)
    error = person_records * math.sqrt(Fraction(RHO_UNIT, 2) / precision)
    return error, error * paid_reach(PaidNoise(place, precision, precision), cells, beta)
