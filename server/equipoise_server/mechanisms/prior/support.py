"""The list of records over which a distribution keeps its weights; the whole universe is one such list."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes


class Support(Protocol):
    """A list of records, and the cell that each has in a table over some attributes."""

    @property
    def size(self) -> int:
        """The number of records."""
        ...

    def table(self, axes: Axes, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up one integer a record, int64[size], in the cells of the table: exact, a dimension for each axis."""
        ...

    def scale(self, axes: Axes, factors: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Multiply each record's weight, float64[size], in place by the factor of its cell of the table."""
        ...

    def add(self, axes: Axes, terms: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        """Add the term of its cell of the table to each record's number, int64[size], in place."""
        ...


@dataclass(frozen=True)
class Universe:
    """All records that can exist, in C order over the attributes. `sizes`: the categories of each attribute."""

    sizes: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of records, `|X|`."""
        return math.prod(self.sizes)

    def table(self, axes: Axes, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up the numbers over all other axes."""
        others = tuple(axis for axis in range(len(self.sizes)) if axis not in axes)
        sums: NDArray[np.int64] = numbers.reshape(self.sizes).sum(axis=others)
        return sums

    def scale(self, axes: Axes, factors: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Multiply along the table's axes."""
        tensor = weights.reshape(self.sizes)
        tensor *= factors.reshape(self._along(axes))

    def add(self, axes: Axes, terms: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        """Add along the table's axes."""
        tensor = numbers.reshape(self.sizes)
        tensor += terms.reshape(self._along(axes))

    def _along(self, axes: Axes) -> tuple[int, ...]:
        return tuple(size if axis in axes else 1 for axis, size in enumerate(self.sizes))
