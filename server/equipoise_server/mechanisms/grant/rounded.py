"""Float64 counts, each with a proven bound on how far rounding has moved it from the exact number.

One operation of float64 errs by at most 2^-53 of its result. The bounds take `OPERATION` for each, which is twice
as much: that covers what errors add to one another. Sums are exact in whole units of a power of two, so that every
machine comes to the same numbers, in whatever order it adds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise.queries.meanings import subsets

EXACT_BITS = 52  # whole units of a table sum to less than 2^53
OPERATION = 2.0**-52


class Rounded(NamedTuple):
    """Counts, float64 of any shape, in records. `slack`: by how much rounding has moved each at most."""

    counts: NDArray[np.float64]
    slack: float = 0.0


class Units(NamedTuple):
    """A table in whole units, int64. `unit`: what one is worth. `slack`: by how much a cell was moved at most."""

    numbers: NDArray[np.int64]
    unit: float
    slack: float


def moved_towards(old: Rounded, new: Rounded, part: NDArray[np.float64] | float) -> Rounded:
    """Return `old + (new - old) part`, count by count.

    Args:
        old: some counts.
        new: what they are moved towards, of the same shape.
        part: how far, from 0 to 1, rounded once.
    """
    counts = np.asarray(old.counts + (new.counts - old.counts) * part)
    # In rounding errors of the larger of both counts: the difference is 2 of it, so that its rounding, that of the
    # part and that of the product are 2 each. The sum's is 1.
    moved = 7 * OPERATION * max(largest(old.counts), largest(new.counts))
    return Rounded(counts, max(old.slack, new.slack) + moved)


def summed(table: Rounded, axes: Axes) -> dict[Axes, Rounded]:
    """Return a table's sums down to every subset of its axes."""
    numbers, unit, moved = in_units(table.counts)
    sums = {axes: table}
    for kept in subsets(axes):
        if kept != axes:
            away = tuple(place for place, axis in enumerate(axes) if axis not in kept)
            cells = math.prod(table.counts.shape[place] for place in away)
            sums[kept] = Rounded(np.asarray(numbers.sum(axis=away) * unit), cells * (table.slack + moved))
    return sums


def in_units(table: NDArray[np.float64]) -> Units:
    """Return a table in whole units of a power of two: whole numbers stay what they are."""
    total = math.fsum(np.abs(table).ravel().tolist())
    unit = 2.0 ** (math.frexp(total + 1)[1] - EXACT_BITS)
    scaled = table / unit
    numbers = np.rint(scaled)
    return Units(numbers.astype(np.int64), unit, largest(scaled - numbers) * unit)


def largest(counts: NDArray[np.float64]) -> float:
    """Return the largest absolute value."""
    return float(np.abs(counts).max(initial=0))
