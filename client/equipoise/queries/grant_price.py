"""What a statement that is asked from a grant may cost: an amount, or what a wanted standard error needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from equipoise.accounting import RHO_UNIT
from equipoise.errors import InvalidArgument
from equipoise.queries.statements import LinearKind, Statement, kind_of

MOST = (1 << 63) - 1  # units: more than any grant allows
RHO_OR_ERROR = "say what each statement may cost: either rho, in zCDP, or error, a standard error in records"


@dataclass(frozen=True)
class GrantPrice:
    """Either of the two: `rho`, in zCDP, or `error`, the standard error of each count in records.

    Raises `InvalidArgument` where none or both are given, or a number is not above 0 and finite.
    """

    rho: float | None = None
    error: float | None = None

    def __post_init__(self) -> None:
        if (self.rho is None) is (self.error is None):
            raise InvalidArgument("rho", RHO_OR_ERROR)
        for name, number in (("rho", self.rho), ("error", self.error)):
            if number is not None and not 0 < number < math.inf:
                raise InvalidArgument(name, "must be above 0 and finite")

    def units(self, statement: Statement, person_records: int) -> int:
        """Return what a statement may cost, in units of 10^-12 of rho: at least 1, and at most 2^63 - 1.

        Noise of variance `s M^2 / (2 rho)` is `rho`-zCDP, where one replaced record moves the statement's counts by
        `sqrt(s)` in L2: `s` is 1 for a condition and 2 for a marginal.

        Args:
            statement: what is asked.
            person_records: how many records each person has, M.

        Raises:
            InvalidArgument: the statement is a statistic, which no grant answers.
        """
        moved = _moved(statement, person_records)
        if self.rho is not None:
            units = math.floor(Fraction(str(self.rho)) * RHO_UNIT)
        else:
            units = math.ceil(moved / (2 * Fraction(self.error or 0) ** 2) * RHO_UNIT)
        return min(max(1, units), MOST)


def paid(price: GrantPrice, person_records: int, statement: Statement) -> int:
    """Return `price.units(statement, person_records)`: the order in which a stream gives what it knows."""
    return price.units(statement, person_records)


def standard_error(statement: Statement, person_records: int, units: int) -> float:
    """Return the standard error of each count of a statement, in records, for what is paid for it.

    Args:
        statement: what is asked.
        person_records: how many records each person has, M.
        units: what is paid, in units of 10^-12 of rho.
    """
    return math.sqrt(_moved(statement, person_records) * RHO_UNIT / (2 * units))


def _moved(statement: Statement, person_records: int) -> int:
    kind = kind_of(statement)
    if not isinstance(kind, LinearKind):
        raise InvalidArgument("statement", "is a statistic, which no grant answers")
    return kind.moves(statement) * person_records**2
