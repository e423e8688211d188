"""Tables of the records in a box, by the thousand: what marginals with a condition are made of.

A restricted table is a coefficient times the queries `x in cell and x in box`, one for each cell of a table. Those
whose cells are over the same axes, and whose boxes constrain the same ones, form a group. As in `box_terms`, all
matrix products are of float64 integers whose partial sums stay within 2^53, so every one of them is exact.

A weighted group counts each record by the weight of its category on one axis, in units of 2^-16 (`axis_weights`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.axis_weights import AxisWeights
from equipoise.queries.box_terms import BLOCK, Vectors
from equipoise.queries.marginal_tables import Axes, Table


@dataclass(frozen=True, eq=False)
class RestrictedTables:
    """The restricted tables over the cells of `axes` whose boxes constrain `box_axes`, which ascend.

    Of table t, `first_queries[t]` is its first query, and those of the other cells follow, the last of `axes`
    varying fastest: int64[tables], ascending, and equal for the tables that make up one statement. `coefficients`
    int64[tables]. `vectors` int32[tables, box axes]: the box, as numbers in these axes' `Vectors`. `sizes`: of all
    axes of the universe. `weights`: on an axis of the box that is none of the table's, where every box leaves out
    the categories of weight 0; None where every record counts alike.
    """

    sizes: tuple[int, ...]
    axes: Axes
    box_axes: Axes
    first_queries: NDArray[np.int64]
    coefficients: NDArray[np.int64]
    vectors: NDArray[np.int32]
    weights: AxisWeights | None = None

    @cached_property
    def table_axes(self) -> Axes:
        """The axes, ascending, of the table of the universe that tells all of these."""
        return tuple(sorted({*self.axes, *self.box_axes}))

    @property
    def shape(self) -> tuple[int, ...]:
        """The categories of `axes`."""
        return tuple(self.sizes[axis] for axis in self.axes)

    @property
    def cells(self) -> int:
        """The queries of each table."""
        return math.prod(self.shape)

    def add_counts(self, table: Table, vectors: Sequence[Vectors], result: Table) -> None:
        """Adds every query's sum over `table`, over `table_axes`, to `result`, [k] of the table's type.

        The caller keeps the sum of |an integer table| within 2^53, or within 2^37 where there are weights.
        """
        matrix = table.transpose(self._order).reshape(-1, self.cells).astype(np.float64)
        for rows in self._blocks(np.arange(len(self.first_queries))):
            sums = (self._outside(rows, vectors) @ matrix).astype(result.dtype)
            sums *= self._inside(rows, vectors)
            sums *= self.coefficients[rows, None]
            np.add.at(result, self._queries(rows), sums)

    def table(self, coefficients: Table, vectors: Sequence[Vectors]) -> Table:
        """The combination of all queries, with coefficients [k], as a table over `table_axes`, of their type.

        The caller keeps the sum of |integer coefficients times these tables' own| within 2^53.
        """
        total = np.zeros((self._outside_size, self.cells))
        for rows in self._blocks(np.arange(len(self.first_queries))):
            weights = coefficients[self._queries(rows)] * self.coefficients[rows, None]
            total += self._spread(rows, weights, vectors)
        return self._as_table(total, coefficients)

    def sparse_table(
        self, queries: NDArray[np.int64], coefficients: NDArray[np.int64], vectors: Sequence[Vectors]
    ) -> Table:
        """`table` where only some queries, int64[j], have coefficients, int64[j]; repeated queries add up."""
        tables, which = self.tables_of(queries)
        places, total = queries[which] - self.first_queries[tables], np.zeros((self._outside_size, self.cells))
        for rows in self._blocks(np.unique(tables)):
            some = np.isin(tables, rows)
            weights = np.zeros((len(rows), self.cells), dtype=np.int64)
            own = np.searchsorted(rows, tables[some])
            np.add.at(weights, (own, places[some]), coefficients[which[some]])
            total += self._spread(rows, weights * self.coefficients[rows, None], vectors)
        return self._as_table(total, coefficients)

    def tables_of(self, queries: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the tables that queries, int64[j], are cells of, and which of the queries: both int64[found]."""
        starts = np.searchsorted(self.first_queries, queries - self.cells, side="right")
        lengths = np.searchsorted(self.first_queries, queries, side="right") - starts
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return np.repeat(starts, lengths) + within, np.repeat(np.arange(len(queries)), lengths)

    def add_covered(self, selected: Sequence[NDArray[np.int64]], vectors: Sequence[Vectors], result: Table) -> None:
        """Adds for how many records of the universe each query is above 0, times its coefficient, to int64[k].

        `selected` holds, for each axis of the universe, how many of its categories each vector selects.
        """
        free = math.prod(size for axis, size in enumerate(self.sizes) if axis not in self.table_axes)
        for rows in self._blocks(np.arange(len(self.first_queries))):
            covered = self.coefficients[rows] * free
            for place in self._outside_places:
                covered = covered * selected[self.box_axes[place]][self.vectors[rows, place]]
            np.add.at(result, self._queries(rows), covered[:, None] * self._inside(rows, vectors))

    def add_record_counts(
        self, categories: NDArray[np.int64], vectors: Sequence[Vectors], result: NDArray[np.int64]
    ) -> None:
        """Adds the records, int64[axes of the universe, B] categories, to the counts of the queries, int64[k]."""
        count = categories.shape[1]
        cells = np.zeros(count, dtype=np.int64)
        for axis in self.axes:
            cells = cells * self.sizes[axis] + categories[axis]
        step = max(1, BLOCK // max(1, count))
        for start in range(0, len(self.first_queries), step):
            rows = slice(start, start + step)
            inside = np.ones((len(self.first_queries[rows]), count), dtype=np.uint8)
            for place, axis in enumerate(self.box_axes):
                inside &= vectors[axis].at(self.vectors[rows, place], categories[axis])
            counted = inside * self.coefficients[rows, None]
            if self.weights is not None:
                counted *= self.weights.array[categories[self.weights.axis]]
            np.add.at(result, self.first_queries[rows, None] + cells, counted)

    @cached_property
    def _outside_places(self) -> list[int]:
        """Which of `box_axes` are not among the table's own."""
        return [place for place, axis in enumerate(self.box_axes) if axis not in self.axes]

    @property
    def _outside_size(self) -> int:
        return math.prod(self.sizes[self.box_axes[place]] for place in self._outside_places)

    @property
    def _order(self) -> tuple[int, ...]:
        """Where in `table_axes` stand first the axes of the box alone, then the cells'."""
        outside = (self.box_axes[place] for place in self._outside_places)
        return tuple(self.table_axes.index(axis) for axis in (*outside, *self.axes))

    def _as_table(self, total: NDArray[np.float64], like: Table) -> Table:
        shape = [self.sizes[self.table_axes[place]] for place in self._order]
        return total.astype(like.dtype).reshape(shape).transpose(np.argsort(self._order))

    def _queries(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the queries of some tables: int64[rows, cells]."""
        return self.first_queries[rows, None] + np.arange(self.cells)

    def _outside(self, rows: NDArray[np.int64], vectors: Sequence[Vectors]) -> NDArray[np.float64]:
        """The boxes of some tables over the axes that are not the table's: float64[rows, combinations].

        They are 0 or 1, or the weight.
        """
        factor = np.ones((len(rows), 1), dtype=np.uint8)
        weight = np.ones(1)
        for place in self._outside_places:
            axis = self.box_axes[place]
            chosen = vectors[axis].rows(self.vectors[rows, place])
            factor = (factor[:, :, None] & chosen[:, None, :]).reshape(len(rows), -1)
            own = self.weights.array if self.weights is not None and self.weights.axis == axis else np.ones(1)
            weight = (weight[:, None] * np.broadcast_to(own, self.sizes[axis])).reshape(-1)
        return factor * weight

    def _inside(self, rows: NDArray[np.int64], vectors: Sequence[Vectors]) -> NDArray[np.uint8]:
        """Which cells of some tables their boxes allow: uint8[rows, cells], or [rows, 1] where they allow all."""
        factor = np.ones((len(rows), *(1 for _ in self.axes)), dtype=np.uint8)
        for place, axis in enumerate(self.box_axes):
            if axis in self.axes:
                shape = [len(rows), *(self.sizes[other] if other == axis else 1 for other in self.axes)]
                factor = factor & vectors[axis].rows(self.vectors[rows, place]).reshape(shape)
        if factor.size == len(rows):
            return factor.reshape(len(rows), 1)
        return np.broadcast_to(factor, (len(rows), *self.shape)).reshape(len(rows), -1)

    def _spread(self, rows: NDArray[np.int64], weights: Table, vectors: Sequence[Vectors]) -> NDArray[np.float64]:
        allowed: NDArray[np.float64] = (weights * self._inside(rows, vectors)).astype(np.float64)
        return self._outside(rows, vectors).T @ allowed

    def _blocks(self, rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Cuts tables into parts that are treated at once."""
        step = max(1, BLOCK // (self.cells + self._outside_size))
        for start in range(0, len(rows), step):
            yield rows[start : start + step]


def weighted_queries(every: Sequence[RestrictedTables], queries: int) -> NDArray[np.bool_]:
    """Returns which queries count records by weights.

    Args:
        every: all restricted tables of a workload.
        queries: how many queries the workload has.

    Returns:
        bool[queries].
    """
    result = np.zeros(queries, dtype=np.bool_)
    for tables in every:
        if tables.weights is not None:
            result[tables.first_queries[:, None] + np.arange(tables.cells)] = True
    return result
