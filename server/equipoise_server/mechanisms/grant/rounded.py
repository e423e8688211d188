"""Float64 counts with a proven bound on their rounding errors: how far they are from what fractions would give.

Let u = 2^-53. One operation of float64 errs by at most u times its result; none here over- or underflows. The
bounds charge `OPERATION = 2 u` for each. The spare half covers that errors are made on numbers which err already,
and that the bounds are float64 themselves. Whole numbers whose absolute values add up to less than 2^53 have exact
sums, in whatever order they are added, so that every machine comes to the same counts and bounds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise.queries.meanings import subsets

EXACT_BITS = 52  # the absolute values of a table in whole units add up to less than 2^53
OPERATION = 2.0**-52


class Rounded(NamedTuple):
    """Counts, float64 of any shape, in records, and a bound on the sum of their rounding errors.

    `slack`: the absolute errors of all counts add up to no more than this many records. So it also bounds the error
    of each count, and that of every sum of some of the counts.
    """

    counts: NDArray[np.float64]
    slack: float = 0.0


class Units(NamedTuple):
    """A table in whole units.

    `numbers`: int64. `unit`: what one is worth, a power of two. `slack`: all differences from the table add up to
    no more than this, in records.
    """

    numbers: NDArray[np.int64]
    unit: float
    slack: float


def mean(old: Rounded, new: Rounded, weight: NDArray[np.float64] | float) -> Rounded:
    """Return `old + (new - old) weight`, count by count.

    Args:
        old: some counts.
        new: other counts, of the same shape.
        weight: of the new ones, from 0 to 1, rounded once.
    """
    step = (new.counts - old.counts) * weight
    counts = np.asarray(old.counts + step)
    # The difference, the weight and their product err by u times the step each, and the sum by u times itself.
    # Where weights differ, old errors may count in full in some counts, and new ones in others: both slacks count.
    return Rounded(counts, old.slack + new.slack + OPERATION * (3 * total(step) + total(counts)))


def summed(table: Rounded, axes: Axes) -> dict[Axes, Rounded]:
    """Return a table's sums down to every subset of its axes: in each, every cell's error is in one sum."""
    numbers, unit, slack = in_units(table.counts)
    sums = {axes: table}
    for kept in subsets(axes):
        if kept != axes:
            away = tuple(place for place, axis in enumerate(axes) if axis not in kept)
            sums[kept] = Rounded(np.asarray(numbers.sum(axis=away) * unit), table.slack + slack)
    return sums


def in_units(table: NDArray[np.float64]) -> Units:
    """Return a table in whole units. Whole numbers whose absolute values add up to less than 2^51 are exact."""
    absolute = math.fsum(np.abs(table).ravel().tolist())
    unit = 2.0 ** (math.frexp(absolute + 1)[1] - EXACT_BITS)
    scaled = table / unit
    numbers = np.rint(scaled)
    return Units(numbers.astype(np.int64), unit, int(np.count_nonzero(scaled != numbers)) * unit / 2)


def total(counts: NDArray[np.float64]) -> float:
    """Return a bound on the sum of absolute values: each is rounded up, so that the sum is exact below 2^53."""
    return float(np.ceil(np.abs(counts)).sum())
