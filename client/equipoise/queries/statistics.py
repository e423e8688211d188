"""What statistics share: numbers that are no linear queries, each with a proven sensitivity.

Values are exact integers in units of 2^-40, rounded down once at the end. A record has a *place* in [0, 1] on the
grid of a binned attribute: the middle of its bin within the range of the edges, so a place `p` stands for
`edges[0] + p (edges[-1] - edges[0])`. A record in no bin, but in a category for missing or unknown values, has
place 0. Numbers that come as doubles are taken for the shortest decimals that stand for them, so 0.3 is 3/10.

Each theorem, with its proof, stands with its class in `equipoise.queries.statements`. There `n` is the number of
records, `p_1 <= ... <= p_n` are their places in order, and r is the widest distance between two places that the
schema allows, below 1.
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
from equipoise.queries.fixed_point import GRID_BITS
from equipoise.queries.predicate_compiler import PredicateCompiler
from equipoise.queries.schema import Attribute, Schema

MAX_RECORDS = 1 << GRID_BITS  # of one database: keeps all sums below 2^62
HALF_BITS = GRID_BITS // 2  # places are multiplied in halves, so that sums of products fit an int64


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
    def of(cls, sizes: tuple[int, ...], cells: NDArray[np.int64], counts: NDArray[np.int64]) -> Databases:
        """Returns a single database.

        Args:
            sizes: how many categories each attribute has.
            cells: int64[entries], different cells of the universe.
            counts: int64[entries], how many records each cell has, at least 1.
        """
        return cls(sizes, np.zeros(1, dtype=np.int64), cells, counts)

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
        """Returns the sum over each database's entries of int64[entries] numbers: int64[databases]."""
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

    @property
    @abstractmethod
    def axes(self) -> tuple[int, ...]:
        """The attributes whose table its value depends on, and on nothing else."""

    @abstractmethod
    def sensitivity(self, records: int) -> Fraction:
        """Delta: by how much its value, before rounding, can move where one of so many records is replaced.

        Rounded down to units of 2^-40 it can move by `grid_units(Delta)` of them.
        """

    @abstractmethod
    def values(self, databases: Databases) -> NDArray[np.int64]:
        """Returns its value on each database, rounded down: int64[databases] in units of 2^-40."""


def grid_units(delta: Fraction) -> int:
    """By how many units of 2^-40 a number can move after rounding down that moves by at most `delta` before."""
    return math.ceil(delta * (1 << GRID_BITS))


def binned(schema: Schema, name: object, path: str) -> int:
    """Returns the axis of an attribute with bins.

    Args:
        schema: of the table.
        name: the attribute's.
        path: what errors call the statement.

    Raises:
        InvalidArgument: there is no such attribute, or it has no bins.
    """
    axis = PredicateCompiler(schema).axis(name, f"{path}.attribute")
    if not schema.attributes[axis].edges:
        raise InvalidArgument(f"{path}.attribute", f"{name!r} has no bins, so its categories have no order")
    return axis


def places_of(attribute: Attribute) -> NDArray[np.int64]:
    """Returns the place of each category: int64[categories], in units of 2^-40."""
    edges = [shortest(edge) for edge in attribute.edges]
    middles = [place_of((low + high) / 2, attribute) for low, high in itertools.pairwise(edges)]
    return np.array(middles + [0] * (attribute.size - attribute.bins), dtype=np.int64)


def place_of(value: Fraction, attribute: Attribute) -> int:
    """Returns the place of a value within the range of the edges, to the nearest unit of 2^-40."""
    low, high = shortest(attribute.edges[0]), shortest(attribute.edges[-1])
    return round((value - low) / (high - low) * (1 << GRID_BITS))


def decimal(number: object, path: str, low: float, high: float) -> Fraction:
    """Returns the shortest decimal that stands for a number.

    Args:
        number: any value, as it was given.
        path: what errors call it.
        low: the smallest that is allowed.
        high: the largest that is allowed.

    Raises:
        InvalidArgument: it is no number from `low` to `high`.
    """
    # Written so that NaN fails it.
    if isinstance(number, bool) or not isinstance(number, int | float) or not low <= number <= high:
        raise InvalidArgument(path, f"must be a number from {low:g} to {high:g}")
    return shortest(float(number))


def shortest(number: float) -> Fraction:
    """Returns the shortest decimal that stands for a double."""
    return Fraction(repr(number))


def widest(places: NDArray[np.int64]) -> Fraction:
    """r: the widest distance of two places."""
    return Fraction(int(places.max() - places.min()), 1 << GRID_BITS)


def exact_sums(databases: Databases, counts: NDArray[np.int64], places: NDArray[np.int64]) -> list[int]:
    """Returns the sum over each database of counts times places.

    Args:
        databases: some, with entries in all.
        counts: int64[entries].
        places: int64[entries], each at most 2^40.
    """
    high = databases.sums(counts * (places >> HALF_BITS)).tolist()
    low = databases.sums(counts * (places & (1 << HALF_BITS) - 1)).tolist()
    return [(above << HALF_BITS) + below for above, below in zip(high, low, strict=True)]


def means(sums: Sequence[int], numbers: Sequence[int]) -> NDArray[np.int64]:
    """Return sums over numbers, each rounded down: int64[databases].

    Args:
        sums: of each database.
        numbers: of records in each, above 0.
    """
    return np.array([each // number for each, number in zip(sums, numbers, strict=True)], dtype=np.int64)
