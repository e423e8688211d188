"""Compiles statistics: numbers that are no linear queries, each with a proven sensitivity.

Values are exact integers in units of 2^-40, rounded down once at the end. A record has a *place* in [0, 1] on the
grid of a binned attribute: the middle of its bin within the range of the edges, so a place `p` stands for
`edges[0] + p (edges[-1] - edges[0])`. A record in no bin, but in a category for missing or unknown values, has
place 0. Numbers that come as doubles are taken for the shortest decimals that stand for them, so 0.3 is 3/10.

Each theorem, with its proof, stands with its class. There `n` is the number of records, `p_1 <= ... <= p_n` are
their places in order, and r is the widest distance between two places that the schema allows, below 1.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.fixed_point import GRID_BITS, on_grid
from equipoise.queries.predicate_compiler import PredicateCompiler
from equipoise.queries.predicates import CappedSum, CountDistinct, Quantile, Statistic, Variance
from equipoise.queries.schema import Attribute, Schema

MAX_RECORDS = 1 << GRID_BITS  # of one database: keeps all sums below 2^62
_HALF = GRID_BITS // 2  # places are multiplied in halves, so that sums of products fit an int64


@dataclass(frozen=True, eq=False)
class Databases:
    """Databases over one universe, each of 1 to 2^40 records, one after another as the cells that hold any.

    `sizes`: the categories of each attribute. `cells`, `counts`: int64[entries], a universe cell and its records,
    at least 1. `starts`: int64[databases], where the entries of each begin; every database has some. Databases
    times cells of the universe stay below 2^62.
    """

    sizes: tuple[int, ...]
    starts: NDArray[np.int64]
    cells: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, sizes: tuple[int, ...], histogram: NDArray[np.int64]) -> Databases:
        """The single database with this int64[|X|] histogram, of at least one record."""
        cells = np.flatnonzero(histogram)
        return cls(sizes, np.zeros(1, dtype=np.int64), cells, histogram[cells])

    @cached_property
    def records(self) -> NDArray[np.int64]:
        """How many records each has: int64[databases]."""
        return self.sums(self.counts)

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """Which database each entry is of: int64[entries]."""
        lengths = np.diff(np.append(self.starts, len(self.cells)))
        return np.repeat(np.arange(len(self.starts)), lengths)

    def sums(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum over each database's entries of int64[entries] numbers: int64[databases]."""
        return np.add.reduceat(numbers, self.starts)

    def categories(self, axis: int) -> NDArray[np.int64]:
        """Of an attribute, at each entry: int64[entries]."""
        return self.cells // math.prod(self.sizes[axis + 1 :]) % self.sizes[axis]


class CompiledStatistic(ABC):
    """A statistic compiled against a schema; made by `compile_statistic`."""

    @property
    def query_count(self) -> int:
        """The numbers that answer it: one."""
        return 1

    @abstractmethod
    def sensitivity(self, records: int) -> Fraction:
        """Delta: by how much its value, before rounding, can move where one of so many records is replaced.

        Rounded down to units of 2^-40 it can move by `grid_units(Delta)` of them.
        """

    @abstractmethod
    def values(self, databases: Databases) -> NDArray[np.int64]:
        """Its value on each database, rounded down: int64[databases] in units of 2^-40."""


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

    def averaged(self, records: int) -> int:
        """How many records of so many are averaged, W."""
        return max(1, math.floor(self.window * records))

    def first(self, records: int) -> int:
        """How many records lie below those that are averaged, a."""
        averaged = self.averaged(records)
        return min(max(0, math.floor(self.level * records - Fraction(averaged, 2))), records - averaged)

    def sensitivity(self, records: int) -> Fraction:
        """r / W."""
        return _spread(self.places) / self.averaged(records)

    def values(self, databases: Databases) -> NDArray[np.int64]:
        """The mean over the window, rounded down."""
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
        return _means(_exact_sums(databases, inside, places[order]), averaged[of_size].tolist())


@dataclass(frozen=True, eq=False)
class CompiledVariance(CompiledStatistic):
    """The variance of the places, mean p^2 - (mean p)^2.

    Theorem: Delta = (n - 1) r^2 / n^2. Proof: the variance is sum_{i<j} (p_i - p_j)^2 / n^2. Replacing one record
    changes n - 1 of these terms, each from one number in [0, r^2] to another. Equality: all others at one end of
    the places, and this one moved from there to the other end.
    """

    axis: int
    places: NDArray[np.int64]

    def sensitivity(self, records: int) -> Fraction:
        """(n - 1) r^2 / n^2."""
        return Fraction(records - 1, records**2) * _spread(self.places) ** 2

    def values(self, databases: Databases) -> NDArray[np.int64]:
        """The variance, rounded down."""
        places = self.places[databases.categories(self.axis)]
        high, low = places >> _HALF, places & (1 << _HALF) - 1
        first, highs, mixed, lows = (
            _exact_sums(databases, databases.counts, each) for each in (places, high * high, high * low, low * low)
        )
        found = []
        for place, records in enumerate(databases.records.tolist()):
            second = (highs[place] << 2 * _HALF) + (mixed[place] << _HALF + 1) + lows[place]
            found.append((records * second - first[place] ** 2) // (records**2 << GRID_BITS))
        return np.array(found, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class CompiledCountDistinct(CompiledStatistic):
    """The number of different combinations of categories, of the attributes `axes`, divided by n.

    Theorem: Delta = 1 / n. Proof: a record that leaves takes at most its own combination with it, one that comes
    brings at most its own. Equality: all records alike, and one of them replaced by another combination.
    """

    axes: tuple[int, ...]

    def sensitivity(self, records: int) -> Fraction:
        """1 / n."""
        return Fraction(1, records)

    def values(self, databases: Databases) -> NDArray[np.int64]:
        """Combinations over records, rounded down."""
        combinations = databases.owners
        for axis in self.axes:
            combinations = combinations * databases.sizes[axis] + databases.categories(axis)
        ordered = np.sort(combinations)
        different = ordered[np.flatnonzero(np.diff(ordered, prepend=-1))]
        owners = different // math.prod(databases.sizes[axis] for axis in self.axes)
        return on_grid(np.bincount(owners, minlength=len(databases.starts)), databases.records)


@dataclass(frozen=True, eq=False)
class CompiledCappedSum(CompiledStatistic):
    """The mean place, none counted as more than the cap's: `places` are those that count.

    Theorem: Delta = r / n, with r the widest distance of two places that count, at most the cap's own. Proof: one
    term of the sum moves, by at most r. Equality: from one end to the other.
    """

    axis: int
    places: NDArray[np.int64]

    def sensitivity(self, records: int) -> Fraction:
        """r / n."""
        return _spread(self.places) / records

    def values(self, databases: Databases) -> NDArray[np.int64]:
        """The mean, rounded down."""
        places = self.places[databases.categories(self.axis)]
        return _means(_exact_sums(databases, databases.counts, places), databases.records.tolist())


def compile_statistic(statistic: Statistic, schema: Schema, path: str) -> CompiledStatistic:
    """Compiles a statistic against a schema. Raises `InvalidArgument` naming what is wrong below `path`."""
    if isinstance(statistic, CountDistinct):
        return CompiledCountDistinct(PredicateCompiler(schema).axes(statistic.attributes, f"{path}.attributes"))
    axis = PredicateCompiler(schema).axis(statistic.attribute, f"{path}.attribute")
    attribute = schema.attributes[axis]
    if not attribute.edges:
        raise InvalidArgument(
            f"{path}.attribute", f"{attribute.name!r} has no bins, so its categories have no order"
        )
    places = _places(attribute)
    match statistic:
        case Quantile(_, level, window):
            exact = _decimal(level, f"{path}.level", 0, 1), _decimal(window, f"{path}.window", 0, 1)
            if exact[1] == 0:
                raise InvalidArgument(
                    f"{path}.window", "must be above 0: a mean is taken over that part of the records"
                )
            return CompiledQuantile(axis, places, *exact)
        case Variance():
            return CompiledVariance(axis, places)
        case CappedSum(_, cap):
            within = _decimal(cap, f"{path}.cap", attribute.edges[0], attribute.edges[-1])
            return CompiledCappedSum(axis, np.minimum(places, _place(within, attribute)))


def grid_units(delta: Fraction) -> int:
    """By how many units of 2^-40 a number can move after rounding down that moves by at most `delta` before."""
    return math.ceil(delta * (1 << GRID_BITS))


def _places(attribute: Attribute) -> NDArray[np.int64]:
    edges = [_shortest(edge) for edge in attribute.edges]
    middles = [_place((low + high) / 2, attribute) for low, high in itertools.pairwise(edges)]
    return np.array(middles + [0] * (attribute.size - attribute.bins), dtype=np.int64)


def _place(value: Fraction, attribute: Attribute) -> int:
    """Within the range of the edges, to the nearest unit of 2^-40."""
    low, high = _shortest(attribute.edges[0]), _shortest(attribute.edges[-1])
    return round((value - low) / (high - low) * (1 << GRID_BITS))


def _decimal(number: object, path: str, low: float, high: float) -> Fraction:
    # Written so that NaN fails it.
    if isinstance(number, bool) or not isinstance(number, int | float) or not low <= number <= high:
        raise InvalidArgument(path, f"must be a number from {low:g} to {high:g}")
    return _shortest(float(number))


def _shortest(number: float) -> Fraction:
    return Fraction(repr(number))


def _spread(places: NDArray[np.int64]) -> Fraction:
    """r: the widest distance of two places."""
    return Fraction(int(places.max() - places.min()), 1 << GRID_BITS)


def _exact_sums(databases: Databases, counts: NDArray[np.int64], places: NDArray[np.int64]) -> list[int]:
    """The sum over each database of counts times places, both int64[entries]; places are at most 2^40."""
    high = databases.sums(counts * (places >> _HALF)).tolist()
    low = databases.sums(counts * (places & (1 << _HALF) - 1)).tolist()
    return [(above << _HALF) + below for above, below in zip(high, low, strict=True)]


def _means(sums: Sequence[int], numbers: Sequence[int]) -> NDArray[np.int64]:
    return np.array([each // number for each, number in zip(sums, numbers, strict=True)], dtype=np.int64)
