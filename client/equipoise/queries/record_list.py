"""Some records of a universe of any size, in a numbered list: memory grows with the list, not with the universe."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes, Table

Codes = NDArray[Any]  # uint8, uint16 or int32
EVERY_PLACE = slice(None)
BLOCK = 1 << 18  # records that are summed down to a table together


@dataclass(frozen=True, eq=False)
class RecordList:
    """Records, of which several may be equal.

    Attributes:
        sizes: the number of categories of each attribute.
        codes: [attributes, r], category numbers: a row for each attribute, a column for each record.

    Raises:
        ValueError: there is no row for each attribute, or a code is not one of its attribute's categories.
    """

    sizes: tuple[int, ...]
    codes: Codes

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or len(self.codes) != len(self.sizes):
            raise ValueError("there must be a code for each attribute of each record")
        for axis, (size, own) in enumerate(zip(self.sizes, self.codes, strict=True)):
            if len(own) and not 0 <= int(own.min()) <= int(own.max()) < size:
                raise ValueError(f"the codes of attribute {axis} must be at least 0 and below {size:,}")

    @property
    def size(self) -> int:
        """The number of records."""
        return int(self.codes.shape[1])

    def cells(self, axes: Axes, some: slice = EVERY_PLACE) -> NDArray[np.int64]:
        """Return the cell of each record, or of some neighbours in the list, in the table over some axes: int64[r].

        Cells are numbered with the last of the axes varying fastest.
        """
        found = np.zeros(len(self.codes[0, some]) if self.sizes else 0, dtype=np.int64)
        for axis in axes:
            found *= self.sizes[axis]
            found += self.codes[axis, some]
        return found

    def table(self, axes: Axes, numbers: Table) -> Table:
        """Add up one number a record, [r], in the cells of the table over some axes, with a dimension for each.

        Of the numbers' type, int64 or float64. The absolute values of integers sum to at most 2^53, so that all
        sums are exact, as doubles, too.
        """
        shape = tuple(self.sizes[axis] for axis in axes)
        total = np.zeros(math.prod(shape), dtype=numbers.dtype)
        alike = numbers.dtype == np.int64 and bool((numbers == 1).all())
        for start in range(0, self.size, BLOCK):
            some = slice(start, start + BLOCK)
            sums = np.bincount(self.cells(axes, some), None if alike else numbers[some], len(total))
            total += sums.astype(numbers.dtype)
        return total.reshape(shape)

    def at(self, places: NDArray[np.int64]) -> RecordList:
        """Return the records at some places of the list, maybe repeated."""
        return RecordList(self.sizes, np.take(self.codes, places, axis=1))
