"""Counts held as coded distinct records, for tables whose universe cannot be enumerated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.listed_workload import ListedWorkload
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.record_list import Codes, RecordList
from equipoise.queries.universe_size import size_in_words

BLOCK = 1 << 16  # records of one block of `occupied`
KEY_BITS = 62  # of numbers that several categories are packed into


@dataclass(frozen=True, eq=False)
class CodedCounts:
    """A table's distinct records in ascending order, and how often each is there: int64[r].

    `Counts` documents the methods.

    Memory: a byte for each category of each distinct record, or two or four where an attribute has many, and 8
    bytes for its count. The universe may be of any size. Counts are at least 0.
    """

    table: RecordList
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, sizes: tuple[int, ...], codes: Codes, counts: NDArray[np.int64]) -> CodedCounts:
        """Make the counts of groups of equal records, of which several may be alike; groups of none are left out.

        Args:
            sizes: the number of categories of each attribute.
            codes: the category of each group, [attributes, groups] of the type that `code_type` gives.
            counts: how many records each group has, int64[groups].
        """
        order, firsts = _ascending(sizes, codes, np.flatnonzero(counts))
        sums = np.add.reduceat(counts[order], firsts) if len(firsts) else np.zeros(0, dtype=np.int64)
        return cls(RecordList(sizes, np.take(codes, order[firsts], axis=1)), sums.astype(np.int64))

    @property
    def universe_size(self) -> int:
        return math.prod(self.table.sizes)

    @cached_property
    def records(self) -> int:
        return int(self.counts.sum())

    def count(self, workload: CompiledWorkload) -> NDArray[np.int64]:
        return ListedWorkload(workload, self.table).counts(self.counts)

    def marginals(self, wanted: Iterable[Axes]) -> Iterator[tuple[Axes, NDArray[np.int64]]]:
        for axes in wanted:
            yield axes, self.table.table(axes, self.counts)

    def occupied(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        for start in range(0, self.table.size, BLOCK):
            some = slice(start, start + BLOCK)
            yield self.table.codes[:, some].T.astype(np.int64), self.counts[some]

    def dense(self) -> NDArray[np.int64]:
        size = size_in_words(self.universe_size)
        raise ValueError(f"the universe has {size} possible records: too many for a list of all")


def code_type(sizes: Sequence[int]) -> type[np.uint8 | np.uint16 | np.int32]:
    """Return the smallest type that holds all category numbers."""
    return np.uint8 if max(sizes) <= 1 << 8 else np.uint16 if max(sizes) <= 1 << 16 else np.int32


def _ascending(
    sizes: Sequence[int], codes: Codes, chosen: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the chosen groups in the order of their records, and the places in it where another record begins."""
    keys = [each[chosen] for each in _packed(sizes, codes)]
    places = np.lexsort(keys[::-1])
    begins = np.ones(len(places), dtype=np.bool_)
    if len(places):
        begins[1:] = False
    for own in keys:
        sorted_own = own[places]
        begins[1:] |= sorted_own[1:] != sorted_own[:-1]
    return chosen[places], np.flatnonzero(begins)


def _packed(sizes: Sequence[int], codes: Codes) -> Iterator[NDArray[np.int64]]:
    """Yield numbers whose lexicographic order is that of the records; each holds as many categories as fit."""
    key, span = np.zeros(codes.shape[1], dtype=np.int64), 1
    for size, own in zip(sizes, codes, strict=True):
        if span * size > 1 << KEY_BITS:
            yield key
            key, span = np.zeros(len(own), dtype=np.int64), 1
        key, span = key * size + own, span * size
    yield key
