"""A smoothed quantile of a binned attribute."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.dates import date_text
from equipoise.queries.schema import Schema
from equipoise.queries.statements.kind import JsonForm, StatisticKind
from equipoise.queries.statistics import (
    CompiledStatistic,
    Databases,
    binned,
    decimal,
    exact_sums,
    means,
    places_of,
    widest,
)


@dataclass(frozen=True)
class Quantile:
    """The value of a binned attribute below which `level` of the records lie: the mean over `window` of them there.

    The smaller the window, the more one record can move it; without one, a single record moves it from one end of
    the range to the other. Exactly: `CompiledQuantile`.

    The largest move by one of 1,000 records, which a session must allow (`options.sensitivity`):

    >>> from equipoise import Attribute, Schema, Quantile
    >>> from equipoise.queries.workload_compiler import compile_statistic
    >>> delay = Attribute("delay", ("[0, 15)", "[15, 60)"), (0.0, 15.0, 60.0))
    >>> compile_statistic(Quantile("delay", 0.5, 0.1), Schema((delay,)), "statement").sensitivity(1000)
    Fraction(1, 200)
    """

    attribute: str
    level: float
    window: float


def median(name: str, window: float) -> Quantile:
    """The smoothed median of the binned attribute `name`: the mean of the `window` of all records in the middle.

    Args:
        name: of the binned attribute.
        window: the part of all records whose mean is taken, above 0 and at most 1.
    """
    return Quantile(name, 0.5, window)


@dataclass(frozen=True, eq=False)
class CompiledQuantile(CompiledStatistic):
    """A smoothed quantile. `places`: int64[categories] of attribute `axis`, in units of 2^-40.

    Of n records, W = max(1, floor(window n)) are averaged: those at positions a + 1 to a + W of the order, where
    a = floor(level n - W / 2), but at least 0 and at most n - W, so that near both ends the window lies inside.

    Theorem: Delta = r / W. Proof: let one record's place grow. Position by position the places in order then lie
    between the old ones and the old ones one position further (r above the lowest place after the last), so the sum
    over the window grows by at most p_(a+W+1) - p_(a+1) <= r, as a telescoping sum, and does not shrink. Equality:
    all records at either end of the places, with the change between both ends inside the window.

    The exact quantile is W = 1, Delta = r: one record can move it over the whole range.
    """

    axis: int
    places: NDArray[np.int64]
    level: Fraction
    window: Fraction

    @property
    def axes(self) -> tuple[int, ...]:
        """The attribute itself."""
        return (self.axis,)

    def averaged(self, records: int) -> int:
        """Returns how many records of so many are averaged, W."""
        return max(1, math.floor(self.window * records))

    def first(self, records: int) -> int:
        """Returns how many records lie below those that are averaged, a."""
        averaged = self.averaged(records)
        return min(max(0, math.floor(self.level * records - Fraction(averaged, 2))), records - averaged)

    def sensitivity(self, records: int) -> Fraction:
        """r / W."""
        return widest(self.places) / self.averaged(records)

    def values(self, databases: Databases) -> NDArray[np.int64]:
        """Returns the mean over the window, rounded down."""
        sizes, of_size = np.unique(databases.records, return_inverse=True)  # few differ
        averaged = np.array([self.averaged(each) for each in sizes.tolist()], dtype=np.int64)
        first = np.array([self.first(each) for each in sizes.tolist()], dtype=np.int64)
        owners, places = databases.owners, self.places[databases.categories(self.axis)]
        order = np.lexsort((places, owners))  # within each database by place; so `starts` stays as it is
        counts = databases.counts[order]
        after = np.cumsum(counts) - (np.cumsum(databases.records) - databases.records)[owners]
        start = first[of_size][owners]
        stop = start + averaged[of_size][owners]
        inside = np.maximum(0, np.minimum(after, stop) - np.maximum(after - counts, start))
        return means(exact_sums(databases, inside, places[order]), averaged[of_size].tolist())


def _compile(quantile: Quantile, schema: Schema, path: str) -> CompiledQuantile:
    axis = binned(schema, quantile.attribute, path)
    level, window = decimal(quantile.level, f"{path}.level", 0, 1), decimal(quantile.window, f"{path}.window", 0, 1)
    if window == 0:
        raise InvalidArgument(f"{path}.window", "must be above 0: a mean is taken over that part of the records")
    return CompiledQuantile(axis, places_of(schema.attributes[axis]), level, window)


def _meaning(quantile: Quantile, value: float, schema: Schema) -> str:
    """Returns the value of the attribute that a place in its range stands for."""
    attribute = schema.attribute(quantile.attribute)
    edges = attribute.edges
    meant = edges[0] + value * (edges[-1] - edges[0])
    return f"at {date_text(meant)}" if attribute.dates else f"at {meant:.6g}"


QUANTILE: StatisticKind[Quantile] = StatisticKind({Quantile: JsonForm("quantile")}, _compile, _meaning)
