"""The variance of a binned attribute."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.fixed_point import GRID_BITS
from equipoise.queries.schema import Schema
from equipoise.queries.statements.kind import JsonForm, StatisticKind
from equipoise.queries.statistics import (
    HALF_BITS,
    CompiledStatistic,
    Databases,
    binned,
    exact_sums,
    places_of,
    widest,
)


@dataclass(frozen=True)
class Variance:
    """The variance of a binned attribute's values.

    The largest move by one of 1,000 records, which a session must allow (`options.sensitivity`):

    >>> from equipoise import Attribute, Schema, Variance
    >>> from equipoise.queries.workload_compiler import compile_statistic
    >>> delay = Attribute("delay", ("[0, 15)", "[15, 60)"), (0.0, 15.0, 60.0))
    >>> compile_statistic(Variance("delay"), Schema((delay,)), "statement").sensitivity(1000)
    Fraction(999, 4000000)
    """

    attribute: str


@dataclass(frozen=True, eq=False)
class CompiledVariance(CompiledStatistic):
    """The variance of the places, mean p^2 - (mean p)^2.

    Theorem: Delta = (n - 1) r^2 / n^2. Proof: the variance is sum_{i<j} (p_i - p_j)^2 / n^2. Replacing one record
    changes n - 1 of these terms, each from one number in [0, r^2] to another. Equality: all others at one end of
    the places, and this one moved from there to the other end.
    """

    axis: int
    places: NDArray[np.int64]

    @property
    def axes(self) -> tuple[int, ...]:
        """The attribute itself."""
        return (self.axis,)

    def sensitivity(self, records: int) -> Fraction:
        """(n - 1) r^2 / n^2."""
        return Fraction(records - 1, records**2) * widest(self.places) ** 2

    def values(self, databases: Databases) -> NDArray[np.int64]:
        """Returns the variance, rounded down."""
        places = self.places[databases.categories(self.axis)]
        high, low = places >> HALF_BITS, places & (1 << HALF_BITS) - 1
        first, highs, mixed, lows = (
            exact_sums(databases, databases.counts, each) for each in (places, high * high, high * low, low * low)
        )
        variances = []
        for place, records in enumerate(databases.records.tolist()):
            second = (highs[place] << 2 * HALF_BITS) + (mixed[place] << HALF_BITS + 1) + lows[place]
            variances.append((records * second - first[place] ** 2) // (records**2 << GRID_BITS))
        return np.array(variances, dtype=np.int64)


def _compile(variance: Variance, schema: Schema, path: str) -> CompiledVariance:
    axis = binned(schema, variance.attribute, path)
    return CompiledVariance(axis, places_of(schema.attributes[axis]))


VARIANCE: StatisticKind[Variance] = StatisticKind({Variance: JsonForm("variance")}, _compile)
