"""All cells of some tables as linear queries over a list of records: the interface `fitting.Queries`.

Tables are summed from the records and spread over them in unions of few tables, one after another, so that the
memory never grows with records times cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise.queries.record_list import Codes, RecordList
from equipoise_server.mechanisms.prior.joined_tables import JoinedTables, joined

MAX_KEPT = 1 << 29  # bytes of cell numbers of records that are kept between steps; beyond, they are found again
PLACES = np.uint16  # their type, but for tables of more cells


@dataclass(frozen=True, eq=False)
class ListedTables:
    """The cells of each of `tables`, one table after another, in C order. A table's axes ascend."""

    records: RecordList
    tables: tuple[Axes, ...]

    @property
    def size(self) -> int:
        """The number of records that have weights."""
        return self.records.size

    @property
    def query_count(self) -> int:
        """The number of cells of all tables."""
        return sum(self._cells)

    def expectations(self, distribution: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return every cell's weight, of float64[size]: float64[query_count]."""
        sums = [np.zeros(0)] * len(self.tables)
        for union, places in zip(self._unions, self._places(), strict=True):
            shape = self._shape(union.axes)
            told = np.bincount(places, distribution, math.prod(shape)).reshape(shape)
            for member in union.members:
                sums[member] = told.sum(axis=_others(union.axes, self.tables[member])).reshape(-1)
        return np.concatenate([np.zeros(0), *sums])

    def combination(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the coefficients, float64[query_count], of each record's cells: float64[size]."""
        total, own = np.zeros(self.size), np.split(coefficients, np.cumsum(self._cells)[:-1])
        for union, places in zip(self._unions, self._places(), strict=True):
            table = np.zeros(self._shape(union.axes))
            for member in union.members:
                axes = self.tables[member]
                table += np.expand_dims(own[member].reshape(self._shape(axes)), _others(union.axes, axes))
            total += table.reshape(-1)[places]
        return total

    @cached_property
    def _unions(self) -> list[JoinedTables]:
        return joined(self.records.sizes, self.tables)

    @cached_property
    def _cells(self) -> list[int]:
        return [math.prod(self._shape(axes)) for axes in self.tables]

    def _shape(self, axes: Axes) -> tuple[int, ...]:
        return tuple(self.records.sizes[axis] for axis in axes)

    def _places(self) -> Iterator[Codes]:
        if len(self._unions) * self.size * np.dtype(PLACES).itemsize > MAX_KEPT:
            yield from map(self._found, self._unions)
        else:
            yield from self._kept

    @cached_property
    def _kept(self) -> list[Codes]:
        return [self._found(union) for union in self._unions]

    def _found(self, union: JoinedTables) -> Codes:
        """Return each record's cell in a union, of which few have more cells than `PLACES` can number."""
        few = math.prod(self._shape(union.axes)) <= np.iinfo(PLACES).max
        return self.records.cells(union.axes).astype(PLACES if few else np.int64)


def _others(union: Axes, axes: Axes) -> tuple[int, ...]:
    """Return the dimensions of a union's table that a member does not have."""
    return tuple(place for place, axis in enumerate(union) if axis not in axes)
