"""A compiled workload over a list of records instead of the whole universe: for universes of any size.

Statements over the same attributes share one table of these, where so many ask for it that summing the records down
to it is cheaper than reading them for each. Boxes and restricted tables of which there are few over the same
attributes are read at every record, eight at once (`packed_boxes`). Memory grows with the queries and with the
records, never with their product.

Formal guarantees: those of `CompiledWorkload`, with the records of the list in place of the universe's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.axis_weights import WHOLE, check_unweighted, in_units, whole_sums
from equipoise.queries.box_terms import EXACT, Terms, check_coefficients, check_some, check_total
from equipoise.queries.compiled_workload import MAX_COEFFICIENTS, CompiledWorkload
from equipoise.queries.marginal_tables import Axes, Table
from equipoise.queries.packed_boxes import PackedBoxes, selected_sums, unpacked
from equipoise.queries.record_list import RecordList
from equipoise.queries.restricted_tables import RestrictedTables

BOXES_A_TABLE = 16  # over the same attributes: so many are cheaper by a table than each at every record
CELLS_A_RECORD = 1 / 2  # of such a table, at most
BLOCK = 1 << 13  # records whose boxes are read together
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ListedWorkload:
    """The queries of a workload over a list of records. `WeighedQueries` documents the methods.

    Raises `ValueError` for a workload over another universe.
    """

    compiled: CompiledWorkload
    records: RecordList

    def __post_init__(self) -> None:
        if self.compiled.schema_sizes != self.records.sizes:
            raise ValueError("the workload is over another universe")

    @property
    def size(self) -> int:
        return self.records.size

    @property
    def query_count(self) -> int:
        return self.compiled.query_count

    @property
    def statement_offsets(self) -> NDArray[np.int64]:
        return self.compiled.statement_offsets

    def categories(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        return tuple(np.take(own, places).astype(np.int64) for own in self.records.codes)

    def counts(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        check_total(histogram, EXACT)
        return whole_sums(self._sum_up, histogram.astype(np.int64, copy=False), self.compiled.weighted)

    def expectations(self, distribution: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = self._sum_up(distribution.astype(np.float64, copy=False))
        return np.where(self.compiled.weighted, sums / WHOLE, sums)

    def record_counts(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        if len(places) and not 0 <= int(places.min()) <= int(places.max()) < self.size:
            raise ValueError(f"places must be at least 0 and below {self.size:,}")
        if len(places) >= self.size:
            return self.counts(np.bincount(places, minlength=self.size).astype(np.int64))
        return ListedWorkload(self.compiled, self.records.at(places)).counts(np.ones(len(places), dtype=np.int64))

    def transpose(self, coefficients: NDArray[np.int64]) -> NDArray[np.int64]:
        check_unweighted(self.compiled.weighted)
        check_coefficients(coefficients, self.query_count, MAX_COEFFICIENTS)
        return self._combine(coefficients)

    def unit_transpose(self, coefficients: NDArray[np.int64]) -> NDArray[np.int64]:
        check_coefficients(coefficients, self.query_count, MAX_COEFFICIENTS // WHOLE)
        return self._combine(in_units(coefficients, self.compiled.weighted))

    def combination(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._combine(np.where(self.compiled.weighted, coefficients / WHOLE, coefficients))

    def transpose_sparse(self, queries: NDArray[np.int64], coefficients: NDArray[np.int64]) -> NDArray[np.int64]:
        check_some(queries, coefficients, self.query_count, MAX_COEFFICIENTS)
        check_unweighted(self.compiled.weighted[queries])
        return self._combined(queries, coefficients)

    def unit_transpose_sparse(
        self, queries: NDArray[np.int64], coefficients: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        check_some(queries, coefficients, self.query_count, MAX_COEFFICIENTS // WHOLE)
        return self._combined(queries, in_units(coefficients, self.compiled.weighted[queries]))

    def _combined(self, queries: NDArray[np.int64], coefficients: NDArray[np.int64]) -> NDArray[np.int64]:
        every = np.zeros(self.query_count, dtype=np.int64)
        np.add.at(every, queries, coefficients)
        return self._combine(every)

    def _sum_up(self, weights: Table) -> Table:
        """Return every query's sum over the records with their weights, [size]: [k], of their type."""
        if weights.shape != (self.size,):
            raise ValueError(f"there must be a weight for each of {self.size:,} records")
        compiled, result = self.compiled, np.zeros(self.query_count, dtype=weights.dtype)
        for axes, queries in compiled.marginal_queries.queries_by_axes.items():
            result[queries] = self.records.table(axes, weights)
        for group in self._groups[0]:
            table = self.records.table(group.axes, weights)
            np.add.at(result, group.queries, group.counts(table, compiled.vectors))
        for each in self._restricted[0]:
            each.add_counts(self.records.table(each.table_axes, weights), compiled.vectors, result)
        boxes, queries, own = self._boxes
        totals = np.zeros(boxes.count, dtype=weights.dtype)
        for some in self._blocks():
            for place, part in boxes.parts():
                bits = part.by_box(compiled.vectors, self.records.codes[:, some])
                totals[place] += selected_sums(bits, weights[some])
            for each in self._restricted[1]:
                self._add_restricted(each, some, weights, result)
        np.add.at(result, queries, totals * own)
        return result

    def _combine(self, coefficients: Table) -> Table:
        """Return the sum of all queries times their coefficients, [k], at every record: [size], of their type."""
        compiled, result = self.compiled, np.zeros(self.size, dtype=coefficients.dtype)
        for axes, queries in compiled.marginal_queries.queries_by_axes.items():
            self._spread(axes, coefficients[queries].sum(axis=0), result)
        for group in self._groups[0]:
            weights = coefficients[group.queries] * group.coefficients
            rows = np.flatnonzero(weights)
            if len(rows):
                self._spread(group.axes, group.table(rows, weights[rows], compiled.vectors), result)
        for each in self._restricted[0]:
            self._spread(each.table_axes, each.table(coefficients, compiled.vectors), result)
        boxes, queries, own = self._boxes
        weights = coefficients[queries] * own
        chosen = np.flatnonzero(weights)
        wanted, weights = boxes.some(chosen), weights[chosen]
        for some in self._blocks():
            for place, part in wanted.parts():
                bits = part.by_record(compiled.vectors, self.records.codes[:, some])
                result[some] += selected_sums(bits, weights[place])
            for each in self._restricted[1]:
                self._spread_restricted(each, some, coefficients, result[some])
        return result

    @cached_property
    def _groups(self) -> tuple[list[Terms], list[Terms]]:
        """The terms that are cheaper by tables, and all others."""
        by_tables = [self._by_tables(group.axes, len(group.queries)) for group in self.compiled.groups]
        return _divided(self.compiled.groups, by_tables)

    @cached_property
    def _restricted(self) -> tuple[list[RestrictedTables], list[RestrictedTables]]:
        """The restricted tables that are cheaper by tables, and all others."""
        every = self.compiled.restricted
        return _divided(every, [self._by_tables(each.table_axes, len(each.first_queries)) for each in every])

    def _by_tables(self, axes: Axes, boxes: int) -> bool:
        cells = math.prod(self.records.sizes[axis] for axis in axes)
        return boxes >= BOXES_A_TABLE and cells <= self.size * CELLS_A_RECORD

    @cached_property
    def _boxes(self) -> tuple[PackedBoxes, NDArray[np.int64], NDArray[np.int64]]:
        """The boxes of all terms that are not treated by tables, their queries and coefficients: int64[boxes]."""
        groups, nothing = self._groups[1], np.zeros(0, dtype=np.int64)
        return (
            PackedBoxes.of((group.axes, group.vectors) for group in groups),
            np.concatenate([nothing, *(group.queries for group in groups)]),
            np.concatenate([nothing, *(group.coefficients for group in groups)]),
        )

    def _spread(self, axes: Axes, table: Table, result: Table) -> None:
        """Add to each record's number, [size], that of its cell of a table."""
        if table.any():
            result += table.reshape(-1)[self.records.cells(axes)]

    def _add_restricted(self, tables: RestrictedTables, some: slice, weights: Table, result: Table) -> None:
        cells, own = self.records.cells(tables.axes, some), weights[some] * self._weights(tables, some)
        for first, coefficient, inside in self._inside(tables, some):
            sums = np.bincount(cells[inside], own[inside], tables.cells)
            result[first : first + tables.cells] += sums.astype(weights.dtype) * coefficient

    def _spread_restricted(self, tables: RestrictedTables, some: slice, coefficients: Table, result: Table) -> None:
        """Add to the numbers of a block of records, [b], those of their cells of the tables that they are in."""
        queries = tables.first_queries[:, None] + np.arange(tables.cells)
        chosen = np.flatnonzero(coefficients[queries].any(axis=1))
        wanted = replace(
            tables,
            first_queries=tables.first_queries[chosen],
            coefficients=tables.coefficients[chosen],
            vectors=tables.vectors[chosen],
        )
        cells, own = self.records.cells(tables.axes, some), self._weights(tables, some)
        for first, coefficient, inside in self._inside(wanted, some):
            table = coefficients[first : first + tables.cells] * coefficient
            result[inside] += (table[cells] * own)[inside]

    def _weights(self, tables: RestrictedTables, some: slice) -> NDArray[np.int64] | int:
        """Return the weight of each record of a block, int64[b] in units of 2^-16; 1 where all count alike."""
        weights = tables.weights
        return 1 if weights is None else weights.array[self.records.codes[weights.axis, some]]

    def _inside(self, tables: RestrictedTables, some: slice) -> Iterator[tuple[int, int, NDArray[np.bool_]]]:
        """Yield each table's first query, its coefficient, and which records of a block are in its box."""
        boxes, codes = PackedBoxes.of([(tables.box_axes, tables.vectors)]), self.records.codes[:, some]
        for place, part in boxes.parts():
            bits = part.by_box(self.compiled.vectors, codes)
            own = zip(tables.first_queries[place].tolist(), tables.coefficients[place].tolist(), bits, strict=True)
            for first, coefficient, packed in own:
                yield first, coefficient, unpacked(packed, codes.shape[1])

    def _blocks(self) -> Iterator[slice]:
        for start in range(0, self.size, BLOCK):
            yield slice(start, min(start + BLOCK, self.size))


def _divided(every: Sequence[T], first: Sequence[bool]) -> tuple[list[T], list[T]]:
    """Return those of which it is said that they come first, and all others."""
    parts: tuple[list[T], list[T]] = [], []
    for each, where in zip(every, first, strict=True):
        parts[not where].append(each)
    return parts
