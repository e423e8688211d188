"""The levels of an ordered axis: unnormalised Haar differences, for any number of bins.

The bins are the leaves of a binary tree that is cut at powers of two, counted from the first bin on. At each level
the blocks are paired from the left; a block without a neighbour goes up alone and has no number there. A pair's
number is the sum of its first block less that of its second. Downwards, a block whose pair has the sum `v` and the
number `d` has `(v + d) / 2` or `(v - d) / 2`. So a prefix of the bins meets the noise of one number a level, not
that of every bin.

Noise of some variance on all numbers of the finest level, of twice as much on the next one, and so on, is
independent noise on every bin (for a power of two). So levels lose nothing; they add the choice of other divisions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting.residuals import axis_levels
from equipoise.queries.marginal_tables import Table


@dataclass(frozen=True)
class Haar:
    """An ordered axis. `AxisBasis` documents the methods."""

    size: int

    @cached_property
    def levels(self) -> int:
        """How many levels there are."""
        return axis_levels(self.size, ordered=True)

    @property
    def denominator(self) -> int:
        return 1 << self.levels

    @property
    def growth(self) -> int:
        return 2 << self.levels

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """The coarsest level first: level `l` has as many numbers as its blocks have neighbours."""
        places, start = [], 0
        for level in range(1, self.levels + 1):
            end = start + self._blocks(level) // 2
            places.append(slice(start, end))
            start = end
        return tuple(places)

    def analyse(self, table: Table, place: int) -> Table:
        sums = np.moveaxis(table, place, -1)
        parts = []
        for _ in range(self.levels):
            first, second, alone = _paired(sums)
            parts.append(first - second)
            sums = np.concatenate([first + second, alone], axis=-1)
        return np.moveaxis(np.concatenate(parts[::-1], axis=-1), -1, place)

    def restore(self, numbers: Table, place: int) -> Table:
        """Halve from the top down. Numerators are over 2^levels, so that every halving is exact."""
        scaled = np.moveaxis(numbers, place, -1) * (1 << self.levels)
        blocks = scaled[..., :1]
        for level, own in enumerate(self.places, start=1):
            differences = scaled[..., own.start + 1 : own.stop + 1]
            pairs = differences.shape[-1]
            finer = np.empty((*blocks.shape[:-1], self._blocks(level)), dtype=blocks.dtype)
            finer[..., 0 : 2 * pairs : 2] = (blocks[..., :pairs] + differences) // 2
            finer[..., 1 : 2 * pairs : 2] = (blocks[..., :pairs] - differences) // 2
            finer[..., 2 * pairs :] = blocks[..., pairs:]
            blocks = finer
        return np.moveaxis(blocks, -1, place)

    def level_products(self, first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
        columns = []
        for _ in range(self.levels):
            (one, other, alone), (one2, other2, alone2) = _paired(first), _paired(second)
            columns.append(((one - other) * (one2 - other2)).sum(axis=-1) / 4)
            first = np.concatenate([(one + other) / 2, alone], axis=-1)
            second = np.concatenate([(one2 + other2) / 2, alone2], axis=-1)
        return np.stack([(first * second)[:, 0], *columns[::-1]], axis=1)

    def means(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        for _ in range(self.levels):
            first, second, alone = _paired(weights)
            weights = np.concatenate([(first + second) / 2, alone], axis=-1)
        return weights[:, 0]

    def cell_strengths(self) -> NDArray[np.float64]:
        """A bin takes the part 2^-j of a sum that is j halvings above it, and so of the number of that halving."""
        strengths = np.zeros((self.size, self.levels + 1))
        part = np.ones(self.size)
        for level in range(self.levels, 0, -1):
            pairs = self._blocks(level) // 2
            paired = np.arange(self.size) >> (self.levels - level) < 2 * pairs
            part[paired] /= 2
            strengths[paired, level] = part[paired] ** 2
        strengths[:, 0] = part**2
        return strengths

    def prefix_strengths(self) -> NDArray[np.float64]:
        """Sum, block by block, the parts of the block's sum that prefixes ending in it take, and their squares.

        A prefix that ends in the first block of a pair takes half the part that it takes of that block. One that
        ends in the second block takes half more than half its part of that block.
        """
        count, part, square = np.ones(self.size), np.ones(self.size), np.ones(self.size)
        strengths = np.zeros(self.levels + 1)
        for level in range(self.levels, 0, -1):
            (n1, n2, n0), (p1, p2, p0), (q1, q2, q0) = _paired(count), _paired(part), _paired(square)
            strengths[level] = (q1 + n2 - 2 * p2 + q2).sum() / 4
            count = np.concatenate([n1 + n2, n0])
            part = np.concatenate([(p1 + n2 + p2) / 2, p0])
            square = np.concatenate([(q1 + n2 + 2 * p2 + q2) / 4, q0])
        strengths[0] = square[0]
        return strengths / self.size

    def _blocks(self, level: int) -> int:
        """How many blocks level `level` pairs."""
        return -(-self.size >> (self.levels - level))  # rounded up


def _paired(blocks: Table) -> tuple[Table, Table, Table]:
    """The first and the second blocks of all pairs along the last dimension, and the block that is left, if any."""
    pairs = blocks.shape[-1] // 2
    return blocks[..., 0 : 2 * pairs : 2], blocks[..., 1 : 2 * pairs : 2], blocks[..., 2 * pairs :]
