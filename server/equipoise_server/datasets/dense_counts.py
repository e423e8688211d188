"""Counts held as one array over the universe, for tables whose universe can be enumerated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.marginal_tables import Axes, marginal_tables

BLOCK = 1 << 18  # cells of one block of `occupied`: 16 MiB with the codes of seven attributes


@dataclass(frozen=True, eq=False)
class DenseCounts:
    """A table's histogram over the universe, int64[|X|], not negative. `Counts` documents the methods.

    `sizes`: the number of categories of each attribute; if it is empty, the universe counts as one attribute.
    Raises `ValueError` where the histogram is not of that universe.
    """

    histogram: NDArray[np.int64]
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.histogram.ndim != 1 or (self.sizes and math.prod(self.sizes) != self.histogram.size):
            raise ValueError("the histogram must have one dimension, with a cell for each possible record")

    @property
    def universe_size(self) -> int:
        return self.histogram.size

    @cached_property
    def records(self) -> int:
        return int(self.histogram.sum())

    def count(self, workload: CompiledWorkload) -> NDArray[np.int64]:
        return workload.counts(self.histogram)

    def marginals(self, wanted: Iterable[Axes]) -> Iterator[tuple[Axes, NDArray[np.int64]]]:
        return marginal_tables(self.histogram.reshape(self.sizes or (-1,)), wanted)

    def occupied(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        cells = np.flatnonzero(self.histogram)
        for start in range(0, len(cells), BLOCK):
            block = cells[start : start + BLOCK]
            records = np.unravel_index(block, self.sizes or (self.histogram.size,))
            yield np.stack(records, axis=1).astype(np.int64, copy=False), self.histogram[block]

    def dense(self) -> NDArray[np.int64]:
        return self.histogram
