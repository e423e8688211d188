"""Distinct records with multiplicities: a table in memory that grows with its records, not with its universe.

All counts are exact integers, the same on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.box_terms import EXACT, Terms
from equipoise.queries.compiled_workload import WORD, CompiledWorkload
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.restricted_tables import RestrictedTables

Codes = NDArray[Any]  # uint8, uint16 or int32

FEW_CELLS = 1 << 12  # a table of so many cells is always cheaper than all records
CELLS_A_RECORD = 8  # and so is one of as many cells as there are records, divided by this
BLOCK = 1 << 18  # records that are treated at once


@dataclass(frozen=True, eq=False)
class CodedRecords:
    """Records over a universe of any size.

    Attributes:
        sizes: the number of categories of each attribute.
        codes: [attributes, r], category numbers: a row for each attribute, a column for each record.
        counts: int64[r], at least 0: how often each record is there.

    Raises:
        ValueError: the shapes do not fit together, a code is not one of its attribute's categories, or a count is
            negative or so large that sums are not exact.
    """

    sizes: tuple[int, ...]
    codes: Codes
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.codes.shape != (len(self.sizes), len(self.counts)):
            raise ValueError("there must be a code for each attribute of each record")
        for axis, (size, own) in enumerate(zip(self.sizes, self.codes, strict=True)):
            if len(own) and not 0 <= int(own.min()) <= int(own.max()) < size:
                raise ValueError(f"the codes of attribute {axis} must be at least 0 and below {size:,}")
        if len(self.counts) and (int(self.counts.min()) < 0 or math.fsum(self.counts.tolist()) > EXACT):
            raise ValueError("counts must be at least 0, and their sum at most 2^53")

    def table(self, axes: Axes) -> NDArray[np.int64]:
        """Return the marginal over some axes, int64 with a dimension for each of them."""
        shape = tuple(self.sizes[axis] for axis in axes)
        total = np.zeros(math.prod(shape), dtype=np.int64)
        alike = bool((self.counts == 1).all())
        for start in range(0, len(self.counts), BLOCK):
            some = slice(start, start + BLOCK)
            cells = np.zeros(len(self.counts[some]), dtype=np.int64)
            for axis, size in zip(axes, shape, strict=True):
                cells *= size
                cells += self.codes[axis, some]
            # Sums of whole numbers below 2^53 are exact as doubles, too.
            weights = None if alike else self.counts[some]
            total += np.bincount(cells, weights, minlength=len(total)).astype(np.int64)
        return total.reshape(shape)

    def counts_of(self, workload: CompiledWorkload) -> NDArray[np.int64]:
        """Count every query: int64[k].

        Statements over the same axes share one table of these, where that is small beside the records. Otherwise
        they are counted on the records, 64 at a time. So the memory grows with the queries and with the records,
        never with their product.

        Raises `ValueError` for a workload over another universe.
        """
        if workload.schema_sizes != self.sizes:
            raise ValueError("the workload is over another universe")
        result = np.zeros(workload.query_count, dtype=np.int64)
        for axes, queries in workload.marginal_queries.queries_by_axes.items():
            result[queries] = self.table(axes)
        boxes, restricted = list[Terms](), list[RestrictedTables]()
        for group in workload.groups:
            if self._is_small(group.axes):
                np.add.at(result, group.queries, group.counts(self.table(group.axes), workload.vectors))
            else:
                boxes.append(group)
        for each in workload.restricted:
            if self._is_small(each.table_axes):
                each.add_counts(self.table(each.table_axes), workload.vectors, result)
            else:
                restricted.append(each)
        self._add_boxes(boxes, workload, result)
        for start in range(0, len(self.counts) if restricted else 0, BLOCK):
            some = slice(start, start + BLOCK)
            codes, counts = self.codes[:, some].astype(np.int64), self.counts[some]
            for each in restricted:
                each.add_record_counts(codes, workload.vectors, result, counts)
        return result

    def _add_boxes(self, groups: list[Terms], workload: CompiledWorkload, result: NDArray[np.int64]) -> None:
        """Add what boxes hold, 64 records at a time; bit b of all of their counts counts 2^b times."""
        used = sorted({axis for group in groups for axis in group.axes})
        totals = [np.zeros(len(group.queries), dtype=np.int64) for group in groups]
        for start in range(0, len(self.counts) if groups else 0, WORD):
            some = slice(start, start + WORD)
            words = {axis: workload.vectors[axis].words(self.codes[axis, some].astype(np.int64)) for axis in used}
            planes = _planes(self.counts[some])
            for place, group in enumerate(groups):
                selected = group.selected(words)
                for bit, plane in planes:
                    totals[place] += np.bitwise_count(selected & plane).astype(np.int64) << bit
        for group, total in zip(groups, totals, strict=True):
            np.add.at(result, group.queries, total * group.coefficients)

    def _is_small(self, axes: Axes) -> bool:
        cells = math.prod(self.sizes[axis] for axis in axes)
        return cells <= max(FEW_CELLS, len(self.counts) // CELLS_A_RECORD)


def _planes(counts: NDArray[np.int64]) -> list[tuple[int, np.uint64]]:
    """Return for every bit of at most 64 counts, where any has it, the word of those that have it."""
    places = np.uint64(1) << np.arange(len(counts), dtype=np.uint64)
    planes = []
    for bit in range(int(counts.max(initial=0)).bit_length()):
        having = (counts >> bit & 1).astype(np.bool_)
        if having.any():
            planes.append((bit, np.bitwise_or.reduce(places[having])))
    return planes
