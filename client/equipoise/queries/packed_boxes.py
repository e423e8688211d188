"""Which of many records lie in which of many boxes, a bit for each pair, and sums over such bits.

The bits of one block of records are made from those of single attributes, and eight bits are added up at once: for
every value that a byte may have, the sum of the numbers that it selects is looked up (the method of the four
Russians). So a pair of a record and a box costs a fraction of a nanosecond, and no float is ever stored for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.box_terms import Vectors
from equipoise.queries.marginal_tables import Axes, Table
from equipoise.queries.record_list import Codes

LOOKED_UP = 1 << 7  # bytes whose sums are looked up together: their tables fit into the processor's cache
AT_ONCE = 1 << 18  # numbers that are looked up together
BYTE_VALUES = 1 << 8
TREATED = 1 << 12  # boxes at once


@dataclass(frozen=True, eq=False)
class PackedBoxes:
    """Boxes of a universe of some axes.

    `count`: how many there are. `constraints`: for each axis that any of them constrains, which boxes do,
    ascending, and the number of the vector that says how: both int64[boxes].
    """

    count: int
    constraints: Mapping[int, tuple[NDArray[np.int64], NDArray[np.int64]]]

    @classmethod
    def of(cls, groups: Iterable[tuple[Axes, NDArray[np.int32]]]) -> PackedBoxes:
        """Take the boxes of groups, one after another: their axes, and int32[boxes, axes] numbers of vectors."""
        count, parts = 0, dict[int, list[tuple[NDArray[np.int64], NDArray[np.int32]]]]()
        for axes, vectors in groups:
            rows = np.arange(count, count + len(vectors))
            for place, axis in enumerate(axes):
                parts.setdefault(axis, []).append((rows, vectors[:, place]))
            count += len(vectors)
        constraints = {
            axis: (
                np.concatenate([rows for rows, _ in each]),
                np.concatenate([numbers for _, numbers in each]).astype(np.int64),
            )
            for axis, each in parts.items()
        }
        return cls(count, constraints)

    def some(self, chosen: NDArray[np.int64]) -> PackedBoxes:
        """Return the boxes at some places, int64[boxes], ascending."""
        found = {}
        for axis, (rows, numbers) in self.constraints.items():
            places = np.searchsorted(chosen, rows)
            kept = np.flatnonzero(places < len(chosen))
            kept = kept[chosen[places[kept]] == rows[kept]]
            if len(kept):
                found[axis] = places[kept], numbers[kept]
        return PackedBoxes(len(chosen), found)

    def parts(self) -> Iterator[tuple[slice, PackedBoxes]]:
        """Yield all boxes in parts that are treated at once, with their places."""
        for start in range(0, self.count, TREATED):
            stop, some = min(start + TREATED, self.count), {}
            for axis, (rows, numbers) in self.constraints.items():
                first, last = np.searchsorted(rows, (start, stop))
                if first < last:
                    some[axis] = rows[first:last] - start, numbers[first:last]
            yield slice(start, stop), PackedBoxes(stop - start, some)

    def by_box(self, vectors: Sequence[Vectors], codes: Codes) -> NDArray[np.uint8]:
        """Return for each box the records in it, eight a byte: uint8[boxes, ceil(b / 8)].

        Args:
            vectors: of each axis of the universe.
            codes: [axes, b], the categories of the records.
        """
        selected = np.repeat(_packed(np.ones((1, codes.shape[1]), dtype=np.bool_)), self.count, axis=0)
        for axis, (rows, numbers) in self.constraints.items():
            used, which = np.unique(numbers, return_inverse=True)
            selected[rows] &= _records_of_vectors(vectors[axis], used, codes[axis])[which]
        return selected

    def by_record(self, vectors: Sequence[Vectors], codes: Codes) -> NDArray[np.uint8]:
        """Return for each record the boxes that it is in, eight a byte: uint8[b, ceil(boxes / 8)].

        Args:
            vectors: of each axis of the universe.
            codes: [axes, b], the categories of the records.
        """
        everything = _packed(np.ones((1, self.count), dtype=np.bool_))
        selected = np.repeat(everything, codes.shape[1], axis=0)
        for axis, (rows, numbers) in self.constraints.items():
            allowed = np.ones((vectors[axis].size, self.count), dtype=np.bool_)
            allowed[:, rows] = vectors[axis].rows(numbers.astype(np.int32)).T
            selected &= _packed(allowed)[codes[axis]]
        return selected


def selected_sums(bits: NDArray[np.uint8], numbers: Table) -> Table:
    """Return for each row the sum of the numbers whose bits are set: [rows], of the numbers' type.

    Integers are added up exactly as long as the sum of their absolute values is below 2^63.

    Args:
        bits: uint8[rows, ceil(b / 8)], low bits first; those beyond b are 0.
        numbers: int64[b] or float64[b].
    """
    if numbers.dtype == np.int64 and bool((numbers == 1).all()):
        return np.asarray(np.bitwise_count(bits).sum(axis=1, dtype=np.int64))
    padded = np.zeros(8 * bits.shape[1], dtype=numbers.dtype)
    padded[: len(numbers)] = numbers
    result = np.zeros(len(bits), dtype=numbers.dtype)
    for start in range(0, bits.shape[1], LOOKED_UP):
        sums = np.zeros((len(padded[8 * start : 8 * (start + LOOKED_UP)]) // 8, 1), dtype=numbers.dtype)
        for bit in range(8):
            own = padded[8 * start + bit : 8 * (start + LOOKED_UP) : 8, None]
            sums = np.concatenate([sums, sums + own], axis=1)
        offsets = np.arange(len(sums)) * BYTE_VALUES
        step = max(1, AT_ONCE // len(sums))
        for first in range(0, len(bits), step):
            some = slice(first, first + step)
            places = bits[some, start : start + LOOKED_UP] + offsets
            result[some] += sums.reshape(-1).take(places).sum(axis=1)
    return result


def unpacked(bits: NDArray[np.uint8], count: int) -> NDArray[np.bool_]:
    """Return the first `count` bits of a row.

    Args:
        bits: uint8[ceil(count / 8) or more], the first bit lowest.
        count: how many bits are wanted.

    Returns:
        bool[count].
    """
    return np.unpackbits(bits, count=count, bitorder="little").astype(np.bool_)


def _packed(bits: NDArray[np.bool_] | NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.packbits(bits, axis=1, bitorder="little")


def _records_of_vectors(vectors: Vectors, used: NDArray[np.int64], codes: Codes) -> NDArray[np.uint8]:
    """Return for some vectors the records whose category they select, eight a byte: uint8[used, ceil(b / 8)]."""
    if len(used) <= vectors.size:
        return _packed(vectors.rows(used.astype(np.int32)).take(codes, axis=1))
    result = np.zeros((len(used), -(-len(codes) // 8)), dtype=np.uint8)
    for byte in range(vectors.bits.shape[1]):
        # What each of the 256 values of this byte of a vector selects.
        selected = np.zeros((1, result.shape[1]), dtype=np.uint8)
        for category in range(8 * byte, min(8 * byte + 8, vectors.size)):
            selected = np.concatenate([selected, selected | _packed((codes == category)[None])])
        result |= selected[vectors.bits[used, byte]]
    return result
