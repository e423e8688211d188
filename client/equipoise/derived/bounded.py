"""Numbers with intervals that hold together, and what follows of two of them: differences, ratios, shares."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.statements import LinearKind, kind_of
from equipoise.results import Results

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bounded:
    """Numbers with their intervals: three arrays of one shape. NaN where there is no number, or no interval."""

    values: Numbers
    lows: Numbers
    highs: Numbers

    @classmethod
    def exact(cls, number: float) -> Bounded:
        """A number that is known."""
        own = np.array(float(number))
        return cls(own, own, own)

    def within(self, low: float, high: float) -> Bounded:
        """The same numbers, whose truths are known to lie from `low` to `high`; no interval becomes all of that."""
        known = ~np.isnan(self.values)
        lows = np.where(np.isnan(self.lows) & known, low, np.clip(self.lows, low, high))
        highs = np.where(np.isnan(self.highs) & known, high, np.clip(self.highs, low, high))
        return Bounded(np.clip(self.values, low, high), lows, highs)


def answers_to(results: Results, statement: int, records: int) -> Bounded:
    """Returns the answers to one statement, as numbers of records.

    Args:
        results: of a round, with their labels.
        statement: its place in the workload.
        records: how many records the table has.

    Returns:
        An array with a dimension for each attribute of the statement's cells; of a single query, with none.

    Raises:
        InvalidArgument: the results have no labels, or there is no such statement of linear queries.
    """
    if results.labels is None:
        raise InvalidArgument("results", "were read without their statements; give these when you read them")
    sizes, first = [], 0
    for number, asked in enumerate(results.labels.statements):
        kind = kind_of(asked)
        names = kind.cells(asked) if isinstance(kind, LinearKind) else ()
        sizes = [results.labels.schema.attribute(name).size for name in names]
        if number == statement and isinstance(kind, LinearKind):
            own = slice(first, first + math.prod(sizes))
            columns = (each[own].reshape(sizes) * records for each in (results.values, results.lows, results.highs))
            return Bounded(*columns)
        first += math.prod(sizes)
    raise InvalidArgument("statement", f"{statement} is none of the linear queries of these results")


def difference(one: Bounded, other: Bounded) -> Bounded:
    """Returns `one - other`.

    Args:
        one: numbers.
        other: numbers of a shape that broadcasts with it.
    """
    return Bounded(one.values - other.values, one.lows - other.highs, one.highs - other.lows)


def ratio(part: Bounded, whole: Bounded) -> Bounded:
    """Returns `part / whole`; no interval where the divisor may be 0, and no value where it is.

    Args:
        part: numbers.
        whole: numbers of a shape that broadcasts with it.
    """
    with np.errstate(all="ignore"):
        values = np.where(whole.values == 0, np.nan, part.values / whole.values)
        corners = [one / other for one in (part.lows, part.highs) for other in (whole.lows, whole.highs)]
        sure = (whole.lows > 0) | (whole.highs < 0)
        lows, highs = np.minimum.reduce(corners), np.maximum.reduce(corners)
    return Bounded(values, np.where(sure, lows, np.nan), np.where(sure, highs, np.nan))


def share(part: Bounded, whole: Bounded) -> Bounded:
    """Returns `part / whole` of records that are counted and some of these: from 0 to 1, whatever the noise.

    Args:
        part: how many of them.
        whole: how many there are, of a shape that broadcasts with it.
    """
    return ratio(part, whole).within(0.0, 1.0)
