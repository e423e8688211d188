"""What a statement of a grant is wanted to be known by: an amount, or what a wanted error needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

from equipoise.accounting import RHO_UNIT
from equipoise.errors import InvalidArgument
from equipoise.queries.meanings import meaning_of
from equipoise.queries.schema import Schema
from equipoise.queries.statements import LinearKind, Statement, kind_of
from equipoise.queries.workload_compiler import compile_single

MOST = (1 << 63) - 1  # units: more than any grant allows
ONE_OF = (
    "say what each statement may cost: rho, in zCDP, or epsilon; or how precisely it is wanted: error, a standard "
    "error in records, or relative, the error of a typical cell as a part of it"
)
OFTEN = 1.959964  # standard errors, which 95 % of normal numbers lie within


@dataclass(frozen=True)
class AskedTable:
    """What is public of the table that a grant is about. `person_records`: how many records each person has, M."""

    schema: Schema
    records: int
    person_records: int = 1


@dataclass(frozen=True)
class GrantPrice:
    """One of these.

    Raises `InvalidArgument` where none or several are given, or a number is not above 0 and finite.

    Attributes:
        rho: what each statement may cost, in zCDP.
        epsilon: the same, as what an answer of that pure epsilon costs: `epsilon^2 / 2` in zCDP.
        error: the standard error of each count, in records.
        relative: the error of a typical cell as a part of its records, which 19 of 20 such cells keep. In a typical
            cell are as many of the records as there would be if all were spread evenly over the table's cells.
    """

    rho: float | None = None
    error: float | None = None
    epsilon: float | None = None
    relative: float | None = None

    def __post_init__(self) -> None:
        given = [(each.name, getattr(self, each.name)) for each in fields(self)]
        if sum(number is not None for _, number in given) != 1:
            raise InvalidArgument("rho", ONE_OF)
        for name, number in given:
            if number is None:
                continue
            if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < math.inf:
                raise InvalidArgument(name, "must be a number above 0 and finite")

    def units(self, statement: Statement, table: AskedTable) -> int:
        """Return what a statement may cost, in units of 10^-12 of rho: at least 1, and at most 2^63 - 1.

        Noise of variance `s M^2 / (2 rho)` is `rho`-zCDP, where one replaced record moves the statement's counts by
        `sqrt(s)` in L2: `s` is 1 for a condition and 2 for a marginal.

        Args:
            statement: what is asked.
            table: what it is asked of.

        Raises:
            InvalidArgument: the statement is a statistic, which no grant answers, or is about no cells of which
                one could be typical.
        """
        moved = _squared_move(statement, table.person_records)
        if self.rho is not None:
            units = math.floor(Fraction(str(self.rho)) * RHO_UNIT)
        elif self.epsilon is not None:
            units = math.floor(Fraction(str(self.epsilon)) ** 2 / 2 * RHO_UNIT)
        else:
            units = math.ceil(moved / (2 * self._error(statement, table) ** 2) * RHO_UNIT)
        return min(max(1, units), MOST)

    def _error(self, statement: Statement, table: AskedTable) -> Fraction:
        """Return the wanted standard error, in records."""
        if self.relative is None:
            return Fraction(self.error or 0)
        told = meaning_of(compile_single(statement, table.schema), b"").told
        if told is None or not told.mask.any():
            raise InvalidArgument("relative", "is not known of this statement: say error, in records")
        # Of the cells that a count is the sum of, as many as the widest count has.
        cells = max(
            int(each) for each in told.mask.reshape(*told.mask.shape[: len(told.axes)], -1).sum(axis=-1).flat
        )
        every = math.prod(told.sizes[axis] for axis in told.table)
        return Fraction(self.relative) * Fraction(cells * table.records, every) / Fraction(OFTEN)


def price_of(**given: float | None) -> GrantPrice | None:
    """Return the price that is given by its name; None where none is.

    Args:
        given: by the names of `GrantPrice`, None where it is not given.

    Raises:
        InvalidArgument: several are given, or it is not above 0 and finite.
    """
    return GrantPrice(**given) if any(number is not None for number in given.values()) else None


def one_of(price: GrantPrice | None) -> GrantPrice:
    """Return the price. Raises `InvalidArgument` that says which there are where there is none."""
    if price is None:
        raise InvalidArgument("rho", ONE_OF)
    return price


def shared_units(rho: float | None, weights: Sequence[float]) -> list[int]:
    """Return what each of several statements may cost of a rho that they share, in units of 10^-12: at least 1.

    Args:
        rho: what all may cost together, in zCDP.
        weights: of each, above 0.

    Raises:
        InvalidArgument: there is no rho, or a weight is not above 0 and finite.
    """
    whole = GrantPrice(rho=rho).rho or 0.0
    if not weights or not all(0 < each < math.inf for each in weights):
        raise InvalidArgument("weights", "must be above 0 and finite, one for each statement")
    exact = [Fraction(str(each)) for each in weights]
    total = Fraction(str(whole)) * RHO_UNIT / sum(exact)
    return [min(max(1, math.floor(total * each)), MOST) for each in exact]


def paid(price: GrantPrice, table: AskedTable, statement: Statement) -> int:
    """Return `price.units(statement, table)`: the order in which a stream gives what it knows."""
    return price.units(statement, table)


def standard_error(statement: Statement, person_records: int, units: int) -> float:
    """Return the standard error of each count of a statement, in records, for what is paid for it.

    Args:
        statement: what is asked.
        person_records: how many records each person has, M.
        units: what is paid, in units of 10^-12 of rho.
    """
    return math.sqrt(_squared_move(statement, person_records) * RHO_UNIT / (2 * units))


def _squared_move(statement: Statement, person_records: int) -> int:
    kind = kind_of(statement)
    if not isinstance(kind, LinearKind):
        raise InvalidArgument("statement", "is a statistic, which no grant answers")
    return kind.moves(statement) * person_records**2
