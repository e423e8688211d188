"""From the measured tables to one distribution, and from it to the synthetic table that every analyst may download.

Sees private outputs only: post-processing, in floating point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.box_terms import Vectors
from equipoise.queries.compiled_workload import CompiledWorkload, MarginalRange
from equipoise_server.mechanisms.fitting import fit
from equipoise_server.mechanisms.pooled.measured import MeasuredTable


def fitted_weights(sizes: tuple[int, ...], tables: Sequence[MeasuredTable], records: int) -> NDArray[np.float64]:
    """The distribution float64[|X|] fitted to all tables at once, each weighted by its noise."""
    cells = [table.counts.size for table in tables]
    offsets = np.concatenate([[0], np.cumsum(cells)]).astype(np.int64)
    marginals = tuple(
        MarginalRange(first, table.axes) for first, table in zip(offsets.tolist(), tables, strict=False)
    )
    no_vectors = tuple(Vectors(size, np.zeros((0, (size + 7) // 8), dtype=np.uint8)) for size in sizes)
    workload = CompiledWorkload(sizes, offsets, marginals, (), no_vectors)
    counts = np.concatenate([np.zeros(0), *(table.counts.reshape(-1) for table in tables)])
    variances = np.repeat([float(table.variance) for table in tables], cells)
    return fit(workload, counts / records, variances / records**2).distribution


def synthetic_records(weights: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """`count` records as universe cells, int64[count] ascending, as many of each as its weight deserves.

    With the weights of all cells laid end to end on a line, one record stands in the middle of each of `count`
    equal parts of it. So every run of neighbouring cells holds its share up to less than one record. (Rounding
    every cell's share by itself would empty all rare cells at once, however much they hold together.)
    """
    ends = np.cumsum(weights)
    places = (np.arange(count) + 0.5) * (float(ends[-1]) / count)
    cells: NDArray[np.int64] = np.minimum(np.searchsorted(ends, places, side="right"), len(weights) - 1)
    return cells
