"""What a grant's noisy counts tell: each by itself, and all tables fitted together, each count with its variance.

The fit is least squares over all tables that were paid for, and over the parts of a standing measurement where
there is one (`equipoise.queries.own_precision` has the theorem). It is post-processing. Everything but exact
sums is elementwise, so that every machine comes to the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.grant_reach import grown
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.meanings import Meaning, Told, subsets
from equipoise.queries.own_precision import EXACTLY, NO_PARTS, OwnPrecision, Parts, cells_outside
from equipoise_server.mechanisms.grant.rounded import OPERATION, Rounded, in_units, mean, summed, total


class MeasuredParts(NamedTuple):
    """The precisions of the parts that a measurement tells, and a function that gives each part's table."""

    precisions: Parts
    table: Callable[[Axes], Rounded]


NOT_MEASURED = MeasuredParts(NO_PARTS, lambda axes: Rounded(np.zeros((0,) * len(axes))))


@dataclass(eq=False)
class Drawn:
    """All noise that was drawn for one meaning.

    Attributes:
        mean: k counts, the means of the noisy counts by their precisions, in the order of the meaning's key.
        precision: of all of them together, in rho of a statement that moves by 1.
        first: of the first of them alone.
        chance: the part of beta that the meaning has, for ever.
        half_width: of the first of them alone, in units of 2^-40.
    """

    mean: Rounded
    precision: Fraction
    first: Fraction
    chance: Fraction
    half_width: int


class Fits:
    """The noisy counts of one grant. `precision`: how precisely they are known, of the grant's account."""

    def __init__(self, precision: OwnPrecision) -> None:
        self.precision = precision
        self._drawn: dict[bytes, Drawn] = {}
        self._parts: dict[Axes, Rounded] = {}
        self._firsts: dict[Axes, Fraction] = {}

    def drawn(self, meaning: Meaning) -> Drawn | None:
        """Return the noise that was drawn for just this meaning; None where there is none."""
        return self._drawn.get(meaning.key)

    def learn(
        self, meaning: Meaning, cost: int, noisy: NDArray[np.int64], chance: Fraction, half_width: int
    ) -> None:
        """Add noisy counts, which the precision has learned of already.

        Args:
            meaning: what was asked.
            cost: what was paid for these.
            noisy: int64[k], in the order of the meaning's key.
            chance: the part of beta that the meaning has, if it is new.
            half_width: of these alone, if it is new.
        """
        own, before = Fraction(cost, meaning.moved), self._drawn.get(meaning.key)
        fresh = Rounded(noisy.astype(np.float64))
        if before is None:
            self._drawn[meaning.key] = Drawn(fresh, own, own, chance, half_width)
        else:
            before.precision += own
            before.mean = mean(before.mean, fresh, float(own / before.precision))
        told = meaning.told
        if told is None or not told.whole:
            return
        table = noisy.reshape(told.mask.shape)
        for part in subsets(told.axes):
            away = tuple(place for place, axis in enumerate(told.axes) if axis not in part)
            sums = Rounded(np.asarray(table.sum(axis=away), dtype=np.float64))
            if part not in self._parts:
                self._parts[part] = sums
                self._firsts[part] = self.precision.part(part)
            else:
                weight = own / cells_outside(told, part) / self.precision.part(part)
                self._parts[part] = mean(self._parts[part], sums, float(weight))

    def counts(self, told: Told, measured: MeasuredParts = NOT_MEASURED) -> Rounded:
        """Return the k fitted counts of sums of the cells of a table that the fit tells.

        Args:
            told: which sums.
            measured: what is fitted together with the tables.
        """
        table = self._fitted(told, measured)
        numbers, unit, slack = in_units(table.counts)
        ordered = numbers.transpose([told.table.index(axis) for axis in (*told.axes, *told.rest)])
        away = tuple(range(len(told.axes), len(told.table)))
        # Each cell is in one count at most, so the counts' errors add up to no more than those of the cells.
        counts = np.asarray((ordered * told.mask).sum(axis=away)).reshape(-1) * unit
        return Rounded(counts, table.slack + slack)

    def spread(self, told: Told, measured: Parts = NO_PARTS) -> float:
        """Return the sum of `ln(1 + 16 p / p_1)` over the parts that tell some counts, and have noise.

        `p` is the precision of a part now, and `p_1` the precision with which it was told first: by the measurement
        where it is fitted together with the tables, as that was made before anything was paid.

        Args:
            told: the counts.
            measured: the precisions of the measurement's parts.
        """
        known = [part for part in subsets(told.table) if part in self._parts or part in measured]
        firsts = {part: measured.get(part) or self._firsts[part] for part in known}
        return math.fsum(
            grown((self.precision.part(part) + measured.get(part, 0)) / firsts[part])
            for part in known
            if firsts[part] != EXACTLY
        )

    def _fitted(self, told: Told, measured: MeasuredParts) -> Rounded:
        """Return the table whose cells some counts are sums of: its parts added up, by inclusion and exclusion."""
        parts = {part: self._part(part, measured) for part in subsets(told.table)}
        sums = {part: summed(own, part) for part, own in parts.items() if own is not None}
        table, slack, absolute = np.zeros([told.sizes[axis] for axis in told.table]), 0.0, 0.0
        for kept in subsets(told.table):
            level = np.zeros([told.sizes[axis] if axis in kept else 1 for axis in told.table])
            for part, down in sums.items():
                if set(kept) <= set(part):
                    sign = (-1.0) ** (len(part) - len(kept))
                    level = level + sign * down[kept].counts.reshape(level.shape)
                    slack += down[kept].slack
                    absolute += total(down[kept].counts)
            table = table + level / cells_outside(told, kept)
        # A level is divided by the number of cells that each of its own is repeated on, so its errors add up to the
        # same as before. It has at most 2^axes additions and one division, and 2^axes levels are added up. All
        # absolute values of any result on the way add up to no more than those of all these tables.
        operations = 2 * (1 << len(told.table)) + 1
        return Rounded(table, slack + operations * OPERATION * absolute)

    def _part(self, part: Axes, measured: MeasuredParts) -> Rounded | None:
        """Return a table whose part is what all together tell of it; None where nothing does."""
        own, precision = self._parts.get(part), measured.precisions.get(part)
        if precision is None:
            return own
        told = measured.table(part)
        if own is None or precision == EXACTLY:
            return told
        paid = self.precision.part(part)
        return mean(told, own, float(paid / (paid + precision)))
