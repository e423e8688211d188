"""The marginals of a compiled workload: which queries are their cells, and how they are counted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.box_terms import BLOCK
from equipoise.queries.marginal_tables import Axes, Table


@dataclass(frozen=True)
class MarginalRange:
    """A marginal statement: its first query, and its axes in the order of its cells."""

    first_query: int
    axes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Marginals:
    """All marginals of a workload over a universe of these sizes, by ascending first query."""

    sizes: tuple[int, ...]
    ranges: tuple[MarginalRange, ...]

    def queries_of(self, marginal: MarginalRange) -> slice:
        """Returns the queries of one marginal."""
        return slice(marginal.first_query, marginal.first_query + math.prod(self._shape(marginal.axes)))

    @cached_property
    def queries_by_axes(self) -> dict[Axes, NDArray[np.int64]]:
        """The queries of all marginals over the same axes, ascending: int64[marginals, a dimension an axis]."""
        queries_of: dict[Axes, list[NDArray[np.int64]]] = {}
        for marginal in self.ranges:
            span, axes = self.queries_of(marginal), tuple(sorted(marginal.axes))
            queries = np.arange(span.start, span.stop).reshape(self._shape(marginal.axes))
            queries_of.setdefault(axes, []).append(queries.transpose(_positions(marginal.axes, axes)))
        return {axes: np.stack(each) for axes, each in queries_of.items()}

    def add_record_counts(self, categories: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Adds the records, int64[axes, B] categories, to the counts of the marginals' cells."""
        first_queries, axes, strides = self._strides
        step = max(1, BLOCK // categories.shape[1])
        for start in range(0, len(first_queries), step):
            rows = slice(start, start + step)
            queries = np.repeat(first_queries[rows, None], categories.shape[1], axis=1)
            for place in range(axes.shape[1]):
                queries += strides[rows, place, None] * categories[axes[rows, place]]
            np.add.at(counts, queries.reshape(-1), 1)

    def sparse_tables(self, queries: NDArray[np.int64], coefficients: NDArray[np.int64]) -> dict[Axes, Table]:
        """Returns, for each set of axes, the sum of the coefficients of the marginals' cells, as a table over them.

        Args:
            queries: int64[j], of which those that are cells of marginals count; repeated ones add up.
            coefficients: int64[j].
        """
        tables: dict[Axes, Table] = {}
        last = np.searchsorted(self._strides[0], queries, side="right") - 1  # that begins before the query
        for row in np.unique(last[last >= 0]).tolist():
            marginal = self.ranges[row]
            span, axes = self.queries_of(marginal), tuple(sorted(marginal.axes))
            inside = (queries >= span.start) & (queries < span.stop)
            if inside.any():
                cells = np.zeros(self._shape(marginal.axes), dtype=np.int64)
                np.add.at(cells.reshape(-1), queries[inside] - span.start, coefficients[inside])
                table = cells.transpose(_positions(marginal.axes, axes))
                tables[axes] = tables[axes] + table if axes in tables else table
        return tables

    @cached_property
    def _strides(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """First queries int64[marginals]; axes and strides of cells, int64[marginals, most axes], padded."""
        most = max((len(marginal.axes) for marginal in self.ranges), default=0)
        axes, strides = (np.zeros((len(self.ranges), most), dtype=np.int64) for _ in range(2))
        for row, marginal in enumerate(self.ranges):
            stride = 1
            for place in reversed(range(len(marginal.axes))):
                axes[row, place], strides[row, place] = marginal.axes[place], stride
                stride *= self.sizes[marginal.axes[place]]
        return np.array([marginal.first_query for marginal in self.ranges], dtype=np.int64), axes, strides

    def _shape(self, axes: Axes) -> tuple[int, ...]:
        return tuple(self.sizes[axis] for axis in axes)


def _positions(axes: Axes, order: Axes) -> tuple[int, ...]:
    """Returns where each axis of `order` stands in `axes`."""
    return tuple(axes.index(axis) for axis in order)
