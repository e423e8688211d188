"""Boxes by the thousand, in arrays: the part of a compiled workload that does the arithmetic.

A term is an integer coefficient times a box, for one query. Terms that constrain the same axes form a group.
All matrix products are over float64 arrays. Where those hold integers whose partial sums stay within 2^53, every
one of them is exact, whatever the BLAS library, its threads and its order of summation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Table

EXACT = 1 << 53  # float64 holds every integer up to here
COMBINATIONS = 16  # of vectors, for each term that needs one, that are cheaper than a product for each term
BLOCK = 1 << 17  # numbers in the float64 blocks of one matrix product: 1 MB, within the processor's cache


@dataclass(frozen=True, eq=False)
class Vectors:
    """The different 0/1 vectors over the categories of one axis: uint8[count, ceil(size / 8)], low bits first."""

    size: int
    bits: NDArray[np.uint8]

    def rows(self, numbers: NDArray[np.int32]) -> NDArray[np.uint8]:
        """Some of the vectors, unpacked: uint8[len(numbers), size]."""
        return np.unpackbits(self.bits[numbers], axis=1, count=self.size, bitorder="little")

    def at(
        self, numbers: NDArray[np.int32] | NDArray[np.int64], categories: NDArray[np.int64]
    ) -> NDArray[np.uint8]:
        """Whether some of the vectors select some categories: uint8[len(numbers), len(categories)], 0 or 1."""
        places, which = np.unique(categories >> 3, return_inverse=True)
        bits = self.bits[numbers[:, None], places].take(which, axis=1)
        return np.asarray(bits >> (categories & 7).astype(np.uint8) & 1)

    def covered(self) -> NDArray[np.int64]:
        """Returns how many categories each vector selects: int64[count]."""
        return np.asarray(np.bitwise_count(self.bits).sum(axis=1, dtype=np.int64))

    def words(self, categories: NDArray[np.int64]) -> NDArray[np.uint64]:
        """For each vector, the records in whose category it is 1: bit b stands for `categories[b]`, b < 64."""
        words = np.zeros(len(self.bits), dtype=np.uint64)
        records = [0] * self.size
        for record, category in enumerate(categories.tolist()):
            records[category] |= 1 << record
        for byte in np.unique(categories >> 3).tolist():
            # What each of the 256 values of this byte of a vector selects.
            selected = np.zeros(1, dtype=np.uint64)
            for word in records[8 * byte : 8 * byte + 8]:
                selected = np.concatenate([selected, selected | np.uint64(word)])
            words |= selected[self.bits[:, byte]]
        return words


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms that constrain `axes`: term i is `coefficients[i]` times the product of its vectors.

    `queries` int64[terms], ascending; `coefficients` int64[terms]; `vectors` int32[terms, axes], numbers in the
    axes' `Vectors`.
    """

    axes: tuple[int, ...]
    queries: NDArray[np.int64]
    coefficients: NDArray[np.int64]
    vectors: NDArray[np.int32]

    def table(self, rows: NDArray[np.int64], weights: Table, vectors: Sequence[Vectors]) -> Table:
        """Returns the sum over `rows` of the weight times the box, as a table over the axes, of the weights' type.

        The caller keeps the sum of |integer weights| within 2^53.

        Args:
            rows: the places of the terms that are added, int64[r].
            weights: a weight for each of these rows, int64[r] or float64[r].
            vectors: of each axis of the universe, which the terms name by number.
        """
        shape = tuple(vectors[axis].size for axis in self.axes)
        total: NDArray[np.float64] | None = None
        for part, left, right in self._blocks(rows, vectors):
            product = (left * weights[part, None]).T @ right
            total = product if total is None else total + product
        if total is None:
            return np.zeros(shape, dtype=weights.dtype)
        return total.astype(weights.dtype).reshape(shape)

    def weighted_rows(
        self, queries: NDArray[np.int64], coefficients: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the terms of some queries, and their coefficients times those given: both int64[rows].

        Args:
            queries: int64[j]; repeated queries give their terms again.
            coefficients: int64[j], one for each query.
        """
        starts = np.searchsorted(self.queries, queries, side="left")
        lengths = np.searchsorted(self.queries, queries, side="right") - starts
        # Row numbers starts[i], starts[i] + 1, ... for each query i, one after another.
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rows = np.repeat(starts, lengths) + within
        return rows, np.repeat(coefficients, lengths) * self.coefficients[rows]

    def counts(self, table: Table, vectors: Sequence[Vectors]) -> Table:
        """For each term, the sum of the table over its box times its coefficient: [terms], of the table's type.

        The caller keeps the sum of |an integer table| within 2^53.
        """
        if table.dtype == np.int64 and (products := self._all_products(table, vectors)) is not None:
            return products * self.coefficients
        result = np.empty(len(self.queries), dtype=table.dtype)
        split = self._split(vectors)
        matrix = table.astype(np.float64).reshape(math.prod(table.shape[:split]), -1)
        for part, left, right in self._blocks(np.arange(len(self.queries)), vectors):
            result[part] = np.einsum("tr,tr->t", left @ matrix, right)
        return result * self.coefficients

    def _all_products(self, table: NDArray[np.int64], vectors: Sequence[Vectors]) -> NDArray[np.int64] | None:
        """For each term, the table's sum over its box; None where its vectors occur in too few combinations.

        Sums over all combinations of the vectors at once, axis by axis. The caller keeps the sum of the table's
        absolute values within 2^53, so that whatever the order of summation, every sum is exact.
        """
        used = [np.unique(self.vectors[:, place], return_inverse=True) for place in range(len(self.axes))]
        if math.prod(len(numbers) for numbers, _ in used) > COMBINATIONS * len(self.queries):
            return None
        sums = table.astype(np.float64)
        for axis, (numbers, _) in zip(self.axes, used, strict=True):
            # The axis that is summed over is the first, and that of its vectors becomes the last.
            sums = np.tensordot(sums, vectors[axis].rows(numbers).astype(np.float64), axes=(0, 1))
        return sums[tuple(which for _, which in used)].astype(np.int64)

    def covered(self, selected: Sequence[NDArray[np.int64]], sizes: Sequence[int]) -> NDArray[np.int64]:
        """For each term, its coefficient times the records of the universe in its box: int64[terms].

        `selected` holds, for each axis of the universe, how many of its `sizes` categories each vector selects.
        """
        result = self.coefficients * math.prod(size for axis, size in enumerate(sizes) if axis not in self.axes)
        for place, axis in enumerate(self.axes):
            result *= selected[axis][self.vectors[:, place]]
        return result

    def selected(self, words: Mapping[int, NDArray[np.uint64]]) -> NDArray[np.uint64]:
        """For each term, the records in its box: uint64[terms], a bit for each of at most 64 records.

        `words` holds, for each of these axes, the records that each of its vectors selects (`Vectors.words`).
        A term over no axes selects all 64 bits.
        """
        selected = np.full(len(self.queries), ~np.uint64(0), dtype=np.uint64)
        for place, axis in enumerate(self.axes):
            selected &= words[axis][self.vectors[:, place]]
        return selected

    def _blocks(
        self, rows: NDArray[np.int64], vectors: Sequence[Vectors]
    ) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.float64]]]:
        """Cuts `rows` into parts; for each its boxes as two factors, over the first and over the other axes."""
        split = self._split(vectors)
        sizes = [vectors[axis].size for axis in self.axes]
        width = math.prod(sizes[:split]) + math.prod(sizes[split:])
        step = max(1, BLOCK // width)
        for start in range(0, len(rows), step):
            part = slice(start, min(start + step, len(rows)))
            numbers = self.vectors[rows[part]]
            places = range(len(self.axes))
            left = self._factor(numbers, places[:split], vectors)
            right = self._factor(numbers, places[split:], vectors)
            yield part, left, right

    def _factor(self, numbers: NDArray[np.int32], places: range, vectors: Sequence[Vectors]) -> NDArray[np.float64]:
        factor = np.ones((len(numbers), 1), dtype=np.uint8)
        for place in places:
            rows = vectors[self.axes[place]].rows(numbers[:, place])
            factor = (factor[:, :, None] & rows[:, None, :]).reshape(len(numbers), -1)
        return factor.astype(np.float64)

    def _split(self, vectors: Sequence[Vectors]) -> int:
        """Returns how many of the axes go to the left factor, so that both factors together are smallest."""
        sizes = [vectors[axis].size for axis in self.axes]
        return min(range(len(sizes) + 1), key=lambda split: math.prod(sizes[:split]) + math.prod(sizes[split:]))


def check_coefficients(coefficients: NDArray[np.int64], queries: int, most: int) -> None:
    """Raises `ValueError` unless there is a coefficient for each of the queries, and `check_total` passes them.

    Args:
        coefficients: int64[k], of either sign.
        queries: how many there are.
        most: the largest total of absolute values that is allowed.
    """
    if coefficients.shape != (queries,):
        raise ValueError(f"there must be {queries} coefficients")
    check_total(coefficients, most)


def check_some(queries: NDArray[np.int64], coefficients: NDArray[np.int64], count: int, most: int) -> None:
    """Raises `ValueError` unless each of some queries has a coefficient, and `check_total` passes these.

    Args:
        queries: int64[j], at least 0 and below `count`.
        coefficients: int64[j].
        count: the number of all queries.
        most: the largest total of absolute values of coefficients.
    """
    if queries.shape != coefficients.shape or queries.ndim != 1:
        raise ValueError("there must be one coefficient for each query")
    if len(queries) and not 0 <= int(queries.min()) <= int(queries.max()) < count:
        raise ValueError(f"queries must be at least 0 and below {count:,}")
    check_total(coefficients, most)


def check_total(numbers: NDArray[np.int64], limit: int) -> None:
    """Raises `ValueError` where the absolute values sum to more than `limit`, itself without overflowing.

    Args:
        numbers: int64[n], of either sign.
        limit: the largest total of absolute values that is allowed.
    """
    if not len(numbers) or max(int(numbers.max()), -int(numbers.min())) <= limit // len(numbers):
        return
    total = 0
    for start in range(0, len(numbers), BLOCK):
        sizes = np.abs(numbers[start : start + BLOCK])
        # Summed as doubles first, so that the check itself cannot overflow; -2^63 has no absolute value.
        fits = int(sizes.min()) >= 0 and float(sizes.sum(dtype=np.float64)) <= 2.0 * limit
        total = total + int(sizes.sum()) if fits else limit + 1
        if total > limit:
            raise ValueError(f"the absolute values sum to more than {limit}; the result might not be exact")
