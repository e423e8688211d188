"""The residuals of a family as linear queries over the universe: what a fit to a residual measurement compares.

Along each axis a table is taken apart into its sum and `size - 1` numbers: an ordered axis by its Haar levels, an
axis in no order by the rows of Helmert's matrix, which are orthonormal and have the sum 0. In these coordinates the
noise of a residual is independent and of one variance, and no number is told twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise.queries.record_list import RecordList
from equipoise.queries.statements.marginal import MARGINAL
from equipoise.queries.workload_builder import WorkloadBuilder
from equipoise.residuals.axis_bases import AxisBasis, Centred, bases_of
from equipoise.residuals.family import ResidualFamily
from equipoise_server.mechanisms.fitting import Queries
from equipoise_server.mechanisms.prior.listed_tables import ListedTables
from equipoise_server.mechanisms.residuals.measurement import Measured

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ResidualQueries:
    """All numbers of a family's residuals, set by set: the interface `fitting.Queries`.

    `records`: those that have weights; None: all that can exist.
    """

    family: ResidualFamily
    records: RecordList | None = None

    @property
    def size(self) -> int:
        """The number of records that have weights."""
        return self._tables.size

    @cached_property
    def query_count(self) -> int:
        """How many numbers there are: one less than the categories of each axis, multiplied, for every set."""
        return sum(math.prod(self._shape(axes)) for axes in self.family.sets)

    def expectations(self, weights: Numbers) -> Numbers:
        """Return the numbers of a distribution, float64[|X|]: float64[query_count]."""
        tables = dict(zip(self.family.largest, self._split(self._tables.expectations(weights)), strict=True))
        return np.concatenate([self._analysed(axes, self._summed(tables, axes)) for axes in self.family.sets])

    def combination(self, coefficients: Numbers) -> Numbers:
        """Return the weighted sum of all queries as a vector over the universe, float64[|X|]."""
        tables = {axes: np.zeros([self.family.sizes[axis] for axis in axes]) for axes in self.family.largest}
        start = 0
        for axes in self.family.sets:
            shape = self._shape(axes)
            own = coefficients[start : start + math.prod(shape)].reshape(shape)
            start += own.size
            for place, axis in enumerate(axes):
                own = _along(self._matrices[axis].T, own, place)
            holder = self._holders[axes]
            tables[holder] += np.expand_dims(own, tuple(i for i, axis in enumerate(holder) if axis not in axes))
        flat = np.concatenate([np.zeros(0), *(table.reshape(-1) for table in tables.values())])
        return self._tables.combination(flat)

    def measured(self, measured: Measured) -> Numbers:
        """Return the measured numbers, in records: float64[query_count]."""
        parts = [np.zeros(0)]
        for axes in self.family.sets:
            numbers = measured.numbers[axes] / math.prod(
                1 if self.family.is_ordered[axis] else self.family.sizes[axis] for axis in axes
            )
            for place, axis in enumerate(axes):
                if not self.family.is_ordered[axis]:
                    numbers = _along(self._matrices[axis], numbers, place)
            parts.append(numbers.reshape(-1))
        return np.concatenate(parts)

    def variances(self, measured: Measured) -> Numbers:
        """Return the variance of each measured number, in records squared: float64[query_count]."""
        parts = [np.zeros(0)]
        for axes in self.family.sets:
            levels = measured.noise.level_variances(axes)
            for place, axis in enumerate(axes):
                levels = np.take(levels, self._levels[axis], axis=place)
            parts.append(levels.reshape(-1))
        return np.concatenate(parts)

    def _analysed(self, axes: Axes, table: Numbers) -> Numbers:
        for place, axis in enumerate(axes):
            table = _along(self._matrices[axis], table, place)
        return table.reshape(-1)

    def _summed(self, tables: dict[Axes, Numbers], axes: Axes) -> Numbers:
        holder = self._holders[axes]
        others = tuple(place for place, axis in enumerate(holder) if axis not in axes)
        return np.asarray(tables[holder].sum(axis=others))

    def _split(self, cells: Numbers) -> Iterable[Numbers]:
        start = 0
        for axes in self.family.largest:
            shape = [self.family.sizes[axis] for axis in axes]
            yield cells[start : start + math.prod(shape)].reshape(shape)
            start += math.prod(shape)

    def _shape(self, axes: Axes) -> tuple[int, ...]:
        return tuple(self.family.sizes[axis] - 1 for axis in axes)

    @cached_property
    def _tables(self) -> Queries:
        if self.records is not None:
            return ListedTables(self.records, self.family.largest)
        builder = WorkloadBuilder(self.family.sizes)
        for axes in self.family.largest:
            builder.add_table(axes)
            builder.end_statement(MARGINAL.l1_sensitivity)
        return builder.build()

    @cached_property
    def _holders(self) -> dict[Axes, Axes]:
        """For each set the smallest of the largest sets that hold it."""
        cells = {axes: math.prod(self.family.sizes[axis] for axis in axes) for axes in self.family.largest}
        holders: dict[Axes, Axes] = {}
        for axes in sorted(self.family.largest, key=lambda each: -cells[each]):
            holders |= dict.fromkeys(_subsets(axes), axes)
        return holders

    @cached_property
    def _bases(self) -> tuple[AxisBasis, ...]:
        return bases_of(self.family.sizes, self.family.is_ordered)

    @cached_property
    def _matrices(self) -> list[Numbers]:
        return [
            _helmert(each.size) if isinstance(each, Centred) else each.analyse(np.eye(each.size), 0)
            for each in self._bases
        ]

    @cached_property
    def _levels(self) -> list[NDArray[np.int64]]:
        """For every axis the level of each of its numbers."""
        levels = []
        for basis, matrix in zip(self._bases, self._matrices, strict=True):
            own = np.ones(len(matrix), dtype=np.int64)
            if not isinstance(basis, Centred):
                for level, places in enumerate(basis.places, start=1):
                    own[places] = level
            levels.append(own)
        return levels


def _subsets(axes: Axes) -> Iterable[Axes]:
    for chosen in range(1, 1 << len(axes)):
        yield tuple(axis for place, axis in enumerate(axes) if chosen >> place & 1)


def _along(matrix: Numbers, table: Numbers, place: int) -> Numbers:
    return np.moveaxis(np.tensordot(matrix, table, axes=(1, place)), 0, place)


def _helmert(size: int) -> Numbers:
    """Row i takes the mean of the first i + 1 categories off the next one, scaled to the norm 1."""
    matrix = np.tril(np.ones((size, size)), -1)[1:] * -1.0
    rows = np.arange(1, size)
    matrix[rows - 1, rows] = rows
    return np.asarray(matrix / np.sqrt(rows * (rows + 1.0))[:, None])
