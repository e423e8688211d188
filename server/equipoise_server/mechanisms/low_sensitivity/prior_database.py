"""The prior of a session of `low_sensitivity` as a database, on which any statistic can be computed.

A statistic depends on the table over its own attributes alone, so that is what the prior is laid out over: as many
records as the data have, each run of neighbouring cells with its share of them up to one record. Laid out over the
whole universe, a single attribute would have an error of one record for each of its runs. A fraction of the records
needs no records, and is taken of the weights themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.statistics import CompiledStatistic, Databases
from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.mechanisms.low_sensitivity.database_question import Proportion
from equipoise_server.mechanisms.prior.distribution import Prior
from equipoise_server.mechanisms.prior.support import Universe
from equipoise_server.mechanisms.repair.weights_hypothesis import TOTAL_BITS


@dataclass(frozen=True, eq=False)
class PriorDatabases:
    """A distribution over the universe, as the database that each statistic is computed on.

    Attributes:
        sizes: the categories of each attribute.
        weights: int64[|X|], with a sum of at most 2^40.
        records: `n`, how many records the data have.
    """

    sizes: tuple[int, ...]
    weights: NDArray[np.int64]
    records: int

    @classmethod
    def of(cls, prior: Prior, sizes: tuple[int, ...], records: int) -> PriorDatabases:
        """Return the databases of a prior for a table of so many records."""
        return cls(sizes, prior.weights >> TOTAL_BITS - GRID_BITS, records)

    def database(self, statistic: CompiledStatistic) -> Databases:
        """Return the one database that stands for the prior where this statistic is asked."""
        if isinstance(statistic, Proportion):
            cells = np.flatnonzero(self.weights)
            return Databases.of(self.sizes, cells, self.weights[cells])
        axes = tuple(sorted(statistic.axes))
        table = Universe(self.sizes).table(axes, self.weights)
        ends = np.cumsum(table.reshape(-1))
        # Elementwise divisions, products and roundings of doubles alone, which are the same on every machine.
        bounds = np.rint(ends / float(ends[-1]) * float(self.records)).astype(np.int64)
        counts = np.diff(bounds, prepend=0)
        occupied = np.flatnonzero(counts)
        strides = [math.prod(self.sizes[axis + 1 :]) for axis in axes]
        categories = np.unravel_index(occupied, table.shape)
        cells = np.zeros(len(occupied), dtype=np.int64)
        for stride, category in zip(strides, categories, strict=True):
            cells += stride * category
        return Databases.of(self.sizes, cells, counts[occupied])
