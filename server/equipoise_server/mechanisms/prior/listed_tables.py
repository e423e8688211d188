"""All cells of some tables as linear queries over a list of records: the interface `fitting.Queries`.

Tables are summed from the records and spread over them one by one, so that the memory never grows with records
times cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise.queries.record_list import RecordList

MAX_KEPT = 1 << 25  # cell numbers of records that are kept between steps: 128 MiB; beyond, they are found again


@dataclass(frozen=True, eq=False)
class ListedTables:
    """The cells of each of `tables`, one table after another, in C order."""

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
        sums = (
            np.bincount(places, distribution, cells)
            for places, cells in zip(self._places(), self._cells, strict=True)
        )
        return np.concatenate([np.zeros(0), *sums])

    def combination(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the coefficients, float64[query_count], of each record's cells: float64[size]."""
        total, start = np.zeros(self.size), 0
        for places, cells in zip(self._places(), self._cells, strict=True):
            total += coefficients[start : start + cells][places]
            start += cells
        return total

    @cached_property
    def _cells(self) -> list[int]:
        return [math.prod(self.records.sizes[axis] for axis in axes) for axes in self.tables]

    def _places(self) -> Iterator[NDArray[np.int32]]:
        if len(self.tables) * self.size > MAX_KEPT:
            yield from (self.records.cells(axes).astype(np.int32) for axes in self.tables)
        else:
            yield from self._kept

    @cached_property
    def _kept(self) -> list[NDArray[np.int32]]:
        return [self.records.cells(axes).astype(np.int32) for axes in self.tables]
