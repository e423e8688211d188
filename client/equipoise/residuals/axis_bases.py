"""How one axis of a table is taken apart into its sum and levels, and put together again: in exact integers.

`equipoise.accounting.residuals` defines the maps. A basis applies them along one dimension of an array, whose other
dimensions may be anything; a table over several axes is analysed one axis after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Table
from equipoise.residuals.haar import Haar


class AxisBasis(Protocol):
    """One axis of `size` categories.

    Attributes:
        denominator: `restore` gives numerators over it.
        places: where the numbers of each level from 1 on lie among an axis's numbers.
        growth: `restore` gives no number above `growth` times the largest it is given, on the way neither.
    """

    @property
    def size(self) -> int:
        """The number of categories."""
        ...

    @property
    def denominator(self) -> int:
        """Documented above."""
        ...

    @property
    def growth(self) -> int:
        """Documented above."""
        ...

    @property
    def places(self) -> tuple[slice, ...]:
        """Documented above."""
        ...

    def analyse(self, table: Table, place: int) -> Table:
        """Return the numbers of all levels from 1 on, one after another along dimension `place`; int64 as given."""
        ...

    def restore(self, numbers: Table, place: int) -> Table:
        """Return the table's numerators, given the sum and then the numbers along dimension `place`.

        Noise in the numbers is spread without bias: with exact numbers the table is exact.
        """
        ...

    def level_products(self, first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how noise of variance 1 on each level reaches two weighted sums: float64[q, levels + 1].

        Args:
            first: the weights of q sums of the restored axis, float64[q, size].
            second: those of q other sums; the same ones for variances.

        Level 0 stands for the product of what the two sums make of the axis's sum.
        """
        ...

    def means(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what weighted sums of the restored axis, float64[q, size], make of its sum: float64[q]."""
        ...

    def cell_strengths(self) -> NDArray[np.float64]:
        """Return `level_products` of every single category with itself: one row if all have the same."""
        ...

    def prefix_strengths(self) -> NDArray[np.float64]:
        """Return the mean over all prefixes of their `level_products` with themselves: float64[levels + 1]."""
        ...


@dataclass(frozen=True)
class Centred:
    """An axis in no order: its one level is `m x - sum(x)` for every category. See `AxisBasis`."""

    size: int

    @property
    def denominator(self) -> int:
        return self.size**2

    @property
    def growth(self) -> int:
        return 3 * self.size

    @property
    def places(self) -> tuple[slice, ...]:
        return (slice(0, self.size),)

    def analyse(self, table: Table, place: int) -> Table:
        return np.asarray(self.size * table - table.sum(axis=place, keepdims=True, dtype=table.dtype))

    def restore(self, numbers: Table, place: int) -> Table:
        """Centre the numbers once more, as their noise is not centred: `m sum + (m y - sum(y))`, over `m^2`."""
        total, own = np.split(numbers, [1], axis=place)
        return self.size * total + self.analyse(own, place)

    def level_products(self, first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
        # Sums of whole weights are exact in any order, so that one division rounds alike on every machine.
        sums = first.sum(axis=1) * second.sum(axis=1)
        inner = (self.size * (first * second).sum(axis=1) - sums) / self.size
        return np.stack([sums / self.size**2, inner], axis=1)

    def means(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(weights.sum(axis=1) / self.size)

    def cell_strengths(self) -> NDArray[np.float64]:
        return np.array([[1 / self.size**2, 1 - 1 / self.size]])

    def prefix_strengths(self) -> NDArray[np.float64]:
        size = self.size
        return np.array([(size + 1) * (2 * size + 1) / (6 * size**2), (size**2 - 1) / (6 * size)])


@lru_cache(maxsize=64)  # as every set of a family asks for them, of which a wide table has thousands
def bases_of(sizes: tuple[int, ...], ordered: tuple[bool, ...]) -> tuple[AxisBasis, ...]:
    """Return the basis of every axis. Axes of one category have no levels and are never analysed.

    Args:
        sizes: the number of categories of each axis.
        ordered: whether each axis is ordered.
    """
    return tuple(Haar(size) if kind else Centred(size) for size, kind in zip(sizes, ordered, strict=True))
