"""The list of records over which a distribution keeps its weights; the whole universe is one such list.

Whoever keeps weights over a `Support` needs no other representation of what can exist.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.listed_workload import ListedWorkload
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.record_list import RecordList
from equipoise.queries.weighed_queries import WeighedQueries
from equipoise_server.datasets.universe import is_enumerable

RECORDS = 1 << 17  # of a list that is drawn
LOW_BITS = 31  # a record's integer is added up in two parts, each of which doubles sum exactly
MAX_RECORDS = 1 << 22  # so that they do


def support_size(sizes: Sequence[int]) -> int:
    """Return how many records the support of a distribution has: all that can exist, or as many as are drawn."""
    universe = math.prod(sizes)
    return universe if is_enumerable(sizes, universe) else RECORDS


class Support(Protocol):
    """A list of records, and the cell that each has in a table over some attributes.

    A record may be in the list several times: each has a weight of its own.
    """

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of categories of each attribute."""
        ...

    @property
    def size(self) -> int:
        """The number of records."""
        ...

    def records(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the records at these places of the list, as category numbers: int64[places, attributes]."""
        ...

    def queries(self, workload: CompiledWorkload) -> WeighedQueries:
        """Return the queries of a workload over these records. Raises `ValueError` for another universe's."""
        ...

    def table(self, axes: Axes, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up one integer a record, int64[size], in the cells of the table: exact, a dimension for each axis.

        The integers are at least 0, and their sum is below 2^62.
        """
        ...

    def scale(self, axes: Axes, factors: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Multiply each record's weight, float64[size], in place by the factor of its cell of the table."""
        ...

    def add(self, axes: Axes, terms: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        """Add the term of its cell of the table to each record's number, int64[size], in place."""
        ...


@dataclass(frozen=True)
class Universe:
    """All records that can exist, in C order over the attributes. `sizes`: the categories of each attribute."""

    sizes: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of records, `|X|`."""
        return math.prod(self.sizes)

    def records(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Take the places for numbers of cells."""
        return np.stack(np.unravel_index(places, self.sizes), axis=1).astype(np.int64, copy=False)

    def queries(self, workload: CompiledWorkload) -> WeighedQueries:
        """Return the workload itself, which works over the whole universe."""
        if workload.schema_sizes != self.sizes:
            raise ValueError("the workload is over another universe")
        return workload

    def table(self, axes: Axes, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up the numbers over all other axes."""
        others = tuple(axis for axis in range(len(self.sizes)) if axis not in axes)
        sums: NDArray[np.int64] = numbers.reshape(self.sizes).sum(axis=others)
        return sums

    def scale(self, axes: Axes, factors: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Multiply along the table's axes."""
        tensor = weights.reshape(self.sizes)
        tensor *= factors.reshape(self._along(axes))

    def add(self, axes: Axes, terms: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        """Add along the table's axes."""
        tensor = numbers.reshape(self.sizes)
        tensor += terms.reshape(self._along(axes))

    def _along(self, axes: Axes) -> tuple[int, ...]:
        return tuple(size if axis in axes else 1 for axis, size in enumerate(self.sizes))


@dataclass(frozen=True, eq=False)
class ListedSupport:
    """Some of the records that can exist, for universes that nobody can enumerate.

    Raises `ValueError` for more than 2^22 records.
    """

    listed: RecordList

    def __post_init__(self) -> None:
        if self.size > MAX_RECORDS:
            raise ValueError(f"a support has at most {MAX_RECORDS:,} records, not {self.size:,}")

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of categories of each attribute."""
        return self.listed.sizes

    @property
    def size(self) -> int:
        """The number of records."""
        return self.listed.size

    def records(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Take the records at these places."""
        return self.listed.codes[:, places].T.astype(np.int64)

    def queries(self, workload: CompiledWorkload) -> WeighedQueries:
        """Read the workload at every record of the list."""
        return ListedWorkload(workload, self.listed)

    def table(self, axes: Axes, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up high and low bits apart: at most 2^22 numbers below 2^31 have a sum that doubles hold."""
        shape = tuple(self.sizes[axis] for axis in axes)
        cells, count = self.listed.cells(axes), math.prod(shape)
        high, low = (
            np.bincount(cells, part, count).astype(np.int64)
            for part in (numbers >> LOW_BITS, numbers & ((1 << LOW_BITS) - 1))
        )
        return np.asarray((high << LOW_BITS) + low).reshape(shape)

    def scale(self, axes: Axes, factors: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Multiply each weight by its record's cell."""
        weights *= factors.reshape(-1)[self.listed.cells(axes)]

    def add(self, axes: Axes, terms: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        """Add each record's cell to its number."""
        numbers += terms.reshape(-1)[self.listed.cells(axes)]
