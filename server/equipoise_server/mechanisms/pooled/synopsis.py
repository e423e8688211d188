"""Fits one distribution to the measured tables, and makes the synthetic table that every analyst may download.

This module sees private outputs only: it is post-processing, in floating point.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.statements.marginal import MARGINAL
from equipoise.queries.workload_builder import WorkloadBuilder
from equipoise_server.mechanisms.fitting import fit
from equipoise_server.mechanisms.pooled.measured import MeasuredTable


def fitted_weights(sizes: tuple[int, ...], tables: Sequence[MeasuredTable], records: int) -> NDArray[np.float64]:
    """Return the distribution float64[|X|] fitted to all tables at once, each weighted by its noise.

    Args:
        sizes: the number of categories of each attribute.
        tables: all that were measured.
        records: the public number of records.
    """
    cells = [table.counts.size for table in tables]
    workload = WorkloadBuilder(sizes)
    for table in tables:
        workload.add_table(table.axes)
        workload.end_statement(MARGINAL.l1_sensitivity)
    counts = np.concatenate([np.zeros(0), *(table.counts.reshape(-1) for table in tables)])
    variances = np.repeat([float(table.variance) for table in tables], cells)
    return fit(workload.build(), counts / records, variances / records**2).distribution


def synthetic_records(weights: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Return `count` records as universe cells, int64[count] ascending, as many of each as its weight deserves.

    With the weights of all cells laid end to end on a line, one record stands in the middle of each of `count`
    equal parts of it. So every run of neighbouring cells holds its share up to less than one record. (Rounding
    every cell's share by itself would empty all rare cells at once, however much they hold together.)

    Args:
        weights: float64[|X|], at least 0, some above.
        count: how many records are wanted.
    """
    ends = np.cumsum(weights)
    places = (np.arange(count) + 0.5) * (float(ends[-1]) / count)
    cells: NDArray[np.int64] = np.minimum(np.searchsorted(ends, places, side="right"), len(weights) - 1)
    return cells
