"""How precisely an analyst knows counts by what it has paid for: exact, and from public facts alone.

**Precision.** A statement that moves by `sqrt(s)` in L2 and is answered for `r` has noise of variance `s M^2 / (2
r)` on each count. Here its precision is `r / s`; a precision of `p` stands for the variance `M^2 / (2 p)`.
Independent noises on one count, weighted by their precisions, have the sum of the precisions.

**Tables.** The counts of a table fall apart into one part for each set R of its axes: what varies along all axes
of R, and along no other. In noise that is alike and independent on all cells the parts are independent. A table
over the axes A that was answered with precision p tells the part of R, for each R within A, with the precision `p
/ n(A without R)` of a cell of the table over R, where n is a number of cells. Precisions of several tables add. So
all tables that were ever answered are fitted by least squares, part by part, whatever they overlap in. Counts that
are sums of the cells of a table over T, with weights w, have the variance `sum_R |w_R|^2 / (n(T without R) p_R)`,
where `w_R` is the part of w.

**A measurement** that is public has noise of its own, which is independent of what was paid for. Its precision of a
count adds to that of the fit. It also tells parts, each with noise that is independent of that of all other parts:
these are fitted together with the tables (`residuals.told_counts` says which, and why). Then the precision of a
part is the sum of both, and the total of all records is known. Of the two ways the more precise one counts, count
by count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from equipoise.queries.marginal_tables import Axes
from equipoise.queries.meanings import Meaning, Told, subsets

EXACTLY = Fraction(1 << 64)  # more precisely than any amount buys: what is known without error

Parts = Mapping[Axes, Fraction]
"""The precision of each part that a measurement tells; of the empty set, the number of all records, `EXACTLY`."""

NO_PARTS: Parts = MappingProxyType({})


class MeasuredPrecision(NamedTuple):
    """What a public measurement tells of a statement.

    `precisions`: of the least precise count of each row of `Told.squares`; of all counts together where those of a
    meaning are not taken apart; 0 where no measured table tells it. `bits`: the length of the longest code word of
    its counts (`residuals.reach`). `parts`: the precision of each measured part.
    """

    precisions: tuple[Fraction, ...]
    bits: int
    parts: Parts = NO_PARTS


class OwnPrecision:
    """What one analyst has paid for, as precisions: of parts of tables, and of everything else by its meaning."""

    def __init__(self) -> None:
        self._parts: dict[Axes, Fraction] = {}
        self._alone: dict[bytes, Fraction] = {}

    def copy(self) -> OwnPrecision:
        """Return a copy, which learns by itself."""
        made = OwnPrecision()
        made._parts, made._alone = dict(self._parts), dict(self._alone)
        return made

    def learn(self, meaning: Meaning, cost: int) -> None:
        """Count noise that was drawn for a statement.

        Args:
            meaning: what is asked.
            cost: what was paid for this noise, above 0, in units of 10^-12 of rho.
        """
        precision = Fraction(cost, meaning.moved)
        told = meaning.told
        if told is None or not told.whole:
            self._alone[meaning.key] = self.alone(meaning) + precision
            return
        for part in subsets(told.axes):
            own = precision / cells_outside(told, part)
            self._parts[part] = self._parts.get(part, Fraction(0)) + own

    def part(self, axes: Axes) -> Fraction:
        """Return the precision of the part of a set of axes, by all tables; 0 where none tells it."""
        return self._parts.get(axes, Fraction(0))

    def alone(self, meaning: Meaning) -> Fraction:
        """Return the precision by noise that was drawn for statements of just this meaning; 0 for whole tables."""
        return self._alone.get(meaning.key, Fraction(0))

    def variances(self, told: Told, measured: Parts = NO_PARTS) -> list[Fraction] | None:
        """Return the inverse of the precision by tables, of each row of `told.squares`; None where none tells.

        Args:
            told: the counts.
            measured: the parts of a measurement that are fitted together with the tables.
        """
        sets, rows, _ = told.squares
        sums = [Fraction(0)] * len(sets)
        unknown: list[tuple[Fraction, ...]] = []
        for part in subsets(told.table):
            known = self.part(part) + measured.get(part, 0)
            shares = _shares(told.sizes, told.axes, told.rest, part)
            if not known:
                unknown.append(shares)
                continue
            sums = [total + share / known for total, share in zip(sums, shares, strict=True)]
        if any(_weighted(row, shares) for shares in unknown for row in rows):
            return None
        return [_weighted(row, sums) for row in rows]

    def fits(self, meaning: Meaning, own: Fraction) -> bool:
        """Return whether tables that were paid for tell a statement, and more than noise for just that does.

        Args:
            meaning: what is asked.
            own: the precision of the noise that was drawn for just this meaning; 0: none was.
        """
        told = meaning.told
        if told is None or self.variances(told) is None:
            return False
        if not told.whole or not own:
            return True
        return any(self.part(part) * cells_outside(told, part) != own for part in subsets(told.axes))

    def joined(self, meaning: Meaning, measured: MeasuredPrecision | None) -> list[Fraction] | None:
        """Return the inverses of precisions, as `variances` does, by tables and a measurement fitted together.

        Args:
            meaning: what is asked.
            measured: what a public measurement tells of it; None: nothing.

        Returns:
            None where they do not tell it, or nothing was paid for any part.
        """
        told = meaning.told
        if told is None or measured is None or not any(part in self._parts for part in subsets(told.table) if part):
            return None
        return self.variances(told, measured.parts) if measured.parts else None

    def known(self, meaning: Meaning, measured: MeasuredPrecision | None = None) -> Fraction:
        """Return the precision of the least precise count of a statement, by everything that is known.

        Args:
            meaning: what is asked.
            measured: what a public measurement tells of it; None: nothing.
        """
        fitted = _precisions(None if meaning.told is None else self.variances(meaning.told))
        joined = _precisions(self.joined(meaning, measured))
        told = [Fraction(0)] if measured is None else list(measured.precisions)
        rows = max(len(fitted), len(joined), len(told))  # what has one number has it for all rows
        fitted, told, joined = (each * (rows // len(each)) for each in (fitted, told, joined))
        ways = zip(fitted, told, joined, strict=True)
        return self.alone(meaning) + min(max(own + other, both) for own, other, both in ways)


def _precisions(variances: list[Fraction] | None) -> list[Fraction]:
    if variances is None or not any(variances):
        return [Fraction(0)]
    return [1 / each if each else EXACTLY for each in variances]


def cells_outside(told: Told, part: Axes) -> int:
    """Return how many cells the table of some counts has for each cell of the table over a part of its axes."""
    return math.prod(told.sizes[axis] for axis in told.table if axis not in part)


@lru_cache(maxsize=1024)  # by far most statements are about a few tables
def _shares(sizes: tuple[int, ...], axes: Axes, rest: Axes, part: Axes) -> tuple[Fraction, ...]:
    """Return what the squares of each of `Told.squares`' sets have in `|w_R|^2 / n(T without R)` of one part R.

    With `w_S` summed down to a set S, `|w_R|^2` is the sum over the subsets S of R of
    `(-1)^|R - S| |w_S|^2 / n(T without S)`.
    Along an axis that has a count of its own for each category a count's sum is 1 on its category, so that
    `1 - 1 / n` is what it and the axis left out add up to.
    """
    common = Fraction(1)
    for axis in (*axes, *rest):
        if axis not in part:
            common /= sizes[axis] ** 2  # once of the parts, and once of the cells outside
        elif axis in axes:
            common *= 1 - Fraction(1, sizes[axis])
    shares = []
    for kept in subsets(rest):
        share = common if set(kept) <= set(part) else Fraction(0)
        for axis in rest:
            if axis in part and axis not in kept:
                share *= Fraction(-1, sizes[axis])
        shares.append(share)
    return tuple(shares)


def _weighted(row: tuple[int, ...], shares: Sequence[Fraction]) -> Fraction:
    return sum((square * share for square, share in zip(row, shares, strict=True)), Fraction(0))
