"""What a grant's noisy counts tell: each by itself, and all tables fitted together, each count with its variance.

The fit is least squares over all tables that were paid for, and over the parts of a standing measurement where
there is one (`equipoise.queries.own_precision` has the theorem). It is post-processing. Sums are exact in whole
units of a power of two, and all else is elementwise, so that every machine comes to the same numbers.
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

EXACT_BITS = 52  # whole units of a table sum to less than 2^53


class MeasuredParts(NamedTuple):
    """What a measurement tells of parts: their precisions, and a table over each of these sets of axes, float64."""

    precisions: Parts
    table: Callable[[Axes], NDArray[np.float64]]


NOT_MEASURED = MeasuredParts(NO_PARTS, lambda axes: np.zeros((0,) * len(axes)))


@dataclass(eq=False)
class Drawn:
    """All noise that was drawn for one meaning.

    Attributes:
        counts: float64[k], the means of the noisy counts by their precisions, in the order of the meaning's key.
        precision: of all of them together, in rho of a statement that moves by 1.
        first: of the first of them alone.
        chance: the part of beta that the meaning has, for ever.
        half_width: of the first of them alone, in units of 2^-40.
    """

    counts: NDArray[np.float64]
    precision: Fraction
    first: Fraction
    chance: Fraction
    half_width: int


class Fits:
    """The noisy counts of one grant. `precision`: how precisely they are known, of the grant's account."""

    def __init__(self, precision: OwnPrecision) -> None:
        self.precision = precision
        self._drawn: dict[bytes, Drawn] = {}
        self._parts: dict[Axes, NDArray[np.float64]] = {}
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
        if before is None:
            self._drawn[meaning.key] = Drawn(noisy.astype(np.float64), own, own, chance, half_width)
        else:
            before.precision += own
            before.counts = _move_towards(before.counts, noisy, own / before.precision)
        told = meaning.told
        if told is None or not told.whole:
            return
        table = noisy.reshape(told.mask.shape)
        for part in subsets(told.axes):
            away = tuple(place for place, axis in enumerate(told.axes) if axis not in part)
            sums = table.sum(axis=away)
            if part not in self._parts:
                self._parts[part] = sums.astype(np.float64)
                self._firsts[part] = self.precision.part(part)
            else:
                gain = own / cells_outside(told, part) / self.precision.part(part)
                self._parts[part] = _move_towards(self._parts[part], sums, gain)

    def counts(self, told: Told, measured: MeasuredParts = NOT_MEASURED) -> NDArray[np.float64]:
        """Return the fitted counts, float64[k], of sums of the cells of a table that the fit tells.

        Args:
            told: which sums.
            measured: what is fitted together with the tables.
        """
        table = np.zeros([told.sizes[axis] for axis in told.table])
        parts = {part: self._part(part, measured) for part in subsets(told.table)}
        sums = {part: _summed(own, part) for part, own in parts.items() if own is not None}
        for kept in subsets(told.table):
            level = np.zeros([told.sizes[axis] if axis in kept else 1 for axis in told.table])
            for part, down in sums.items():
                if set(kept) <= set(part):
                    sign = (-1.0) ** (len(part) - len(kept))
                    level = level + sign * down[kept].reshape(level.shape)
            table = table + level / cells_outside(told, kept)
        units, unit = _in_units(table)
        ordered = units.transpose([told.table.index(axis) for axis in (*told.axes, *told.rest)])
        away = tuple(range(len(told.axes), len(told.table)))
        return np.asarray((ordered * told.mask).sum(axis=away).reshape(-1) * unit)

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

    def _part(self, part: Axes, measured: MeasuredParts) -> NDArray[np.float64] | None:
        """Return a table whose part is what all together tell of it; None where nothing does."""
        own, precision = self._parts.get(part), measured.precisions.get(part)
        if precision is None:
            return own
        told = measured.table(part)
        if own is None or precision == EXACTLY:
            return told
        paid = self.precision.part(part)
        return _move_towards(told, own, paid / (paid + precision))


def _move_towards(
    counts: NDArray[np.float64], noisy: NDArray[np.int64] | NDArray[np.float64], part: Fraction
) -> NDArray[np.float64]:
    return np.asarray(counts + (noisy - counts) * float(part))


def _summed(table: NDArray[np.float64], axes: Axes) -> dict[Axes, NDArray[np.float64]]:
    """Return a table's sums down to every subset of its axes, each exact to whole units."""
    units, unit = _in_units(table)
    sums = {}
    for kept in subsets(axes):
        away = tuple(place for place, axis in enumerate(axes) if axis not in kept)
        sums[kept] = table if not away else np.asarray(units.sum(axis=away) * unit)
    return sums


def _in_units(table: NDArray[np.float64]) -> tuple[NDArray[np.int64], float]:
    """Return a table in whole units of a power of two, and what one is worth: whole numbers stay what they are."""
    total = math.fsum(np.abs(table).ravel().tolist())
    unit = 2.0 ** (math.frexp(total + 1)[1] - EXACT_BITS)
    return np.rint(table / unit).astype(np.int64), unit
