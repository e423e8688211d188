"""The measured tables of a round, and the estimates of other tables from them.

Every table is counted once, with discrete Gaussian noise. A table over fewer attributes is told by all measured
tables that hold its attributes: each is summed down to it, and the sums are averaged by their variances; then the
known number of records is shared out over its cells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.noise_calibration import MAX_MOVED, GaussianNoise
from equipoise_server.mechanisms.pooled.family import table_cells
from equipoise_server.randomness.stream import KeyedStream


@dataclass(frozen=True)
class MeasuredTable:
    """A table's noisy counts, int64 with one dimension for each of its axes, and the variance of their noise."""

    axes: Axes
    counts: NDArray[np.int64]
    variance: Fraction


@dataclass(frozen=True)
class TableEstimate:
    """What the measured tables say about one table: float64 counts that sum to the number of records.

    `variance`: any sum of `j` of its `N` cells errs like a sub-Gaussian number of variance `j (1 - j / N)
    variance`.
    """

    counts: NDArray[np.float64]
    variance: float


def measure(data: Counts, rhos: Mapping[Axes, Fraction], seed: bytes) -> tuple[MeasuredTable, ...]:
    """Count every table of `rhos` once, with noise that costs the data at most its rho.

    Each table draws from a stream of its own. Formal guarantees: `accounting.tables_rho` of the variances, at most
    the sum of the rhos.

    Args:
        data: the table's counts.
        rhos: for each set of attributes what its table may cost.
        seed: of the round, 32 bytes.
    """
    noises = {axes: GaussianNoise.within(rho).law(MAX_MOVED) for axes, rho in rhos.items()}
    variances = {axes: GaussianNoise.within(rho).variance * MAX_MOVED for axes, rho in rhos.items()}
    tables = []
    for axes, table in data.marginals(rhos):
        stream = KeyedStream.derive(seed, "pooled/tables", ",".join(map(str, axes)))
        counts = table + noises[axes].draw(table.size, stream).reshape(table.shape)
        tables.append(MeasuredTable(axes, counts, variances[axes]))
    return tuple(sorted(tables, key=lambda table: table.axes))


def estimated_variance(sizes: tuple[int, ...], axes: Axes, measured: Iterable[tuple[Axes, float]]) -> float:
    """Return the variance of a cell of the averaged table over `axes`; inf where no measured table holds them.

    A table with noise of variance `v` on every cell, summed down to `axes`, adds up `r` cells into one: variance
    `r v`. Averaging with weights proportional to `1 / (r v)` gives `1 / sum 1 / (r v)`.

    Variances are those of sub-Gaussian numbers. Discrete Gaussian noise Z of parameter `v` is one: `E exp(t Z)` is
    `exp(t^2 v / 2)` times the sum over integers of `exp(-(z - t v)^2 / 2v)` over the same sum for t = 0, which is
    the largest of these sums (Canonne, Kamath & Steinke 2020). A weighted sum of independent ones is sub-Gaussian
    with the weighted sum of variances, so Chernoff's bound gives `reach`.

    Args:
        sizes: the number of categories of each attribute.
        axes: of the averaged table.
        measured: the attributes of each table that was measured, with the variance of one cell.
    """
    holding = ((other, variance) for other, variance in measured if set(axes) <= set(other))
    return estimated_variances(sizes, [axes], holding)[0]


def estimated_variances(
    sizes: tuple[int, ...], sets: Sequence[Axes], measured: Iterable[tuple[Axes, float]]
) -> list[float]:
    """Return `estimated_variance` of each of these sets, in a time that grows with the subsets of what is measured.

    Args:
        sizes: the number of categories of each attribute.
        sets: of the averaged tables, each ascending.
        measured: the attributes of each table that was measured, ascending, with the variance of one cell.
    """
    cells = {axes: table_cells(sizes, axes) for axes in sets}
    precisions = dict.fromkeys(sets, 0.0)
    for other, variance in measured:
        summed = table_cells(sizes, other)
        for axes in itertools.chain.from_iterable(itertools.combinations(other, n) for n in range(len(other) + 1)):
            if axes in cells:
                precisions[axes] += cells[axes] / summed / variance
    return [1 / precisions[axes] if precisions[axes] else math.inf for axes in sets]


def estimate(sizes: tuple[int, ...], axes: Axes, tables: Sequence[MeasuredTable], records: int) -> TableEstimate:
    """Return the average of all measured tables that hold `axes`, with the known number of records shared out.

    Adding the same amount to all `N` cells so that they sum to the truth takes the mean of the noise off every
    cell: a sum of `j` cells then has coefficients `1 - j / N` on its own cells and `-j / N` on the others, whose
    squares sum to `j (1 - j / N)`.

    Args:
        sizes: the number of categories of each attribute.
        axes: of the wanted table.
        tables: all that were measured.
        records: the public number of records.
    """
    shape = tuple(sizes[axis] for axis in axes)
    cells = math.prod(shape)
    variance = estimated_variance(sizes, axes, [(table.axes, float(table.variance)) for table in tables])
    counts = np.zeros(shape)
    for table in tables:
        if set(axes) <= set(table.axes):
            others = tuple(place for place, axis in enumerate(table.axes) if axis not in axes)
            weight = variance * cells / table.counts.size / float(table.variance)
            counts += weight * table.counts.sum(axis=others, dtype=np.int64)
    return TableEstimate(counts + (records - counts.sum()) / cells, 0.0 if variance == math.inf else variance)


def reach(variance: float, chance: float) -> float:
    """Return what a sub-Gaussian number of this variance exceeds on either side with probability at most `chance`.

    Args:
        variance: of the number; the result has the unit of its root.
        chance: in (0, 1), of both sides together.
    """
    return math.sqrt(2 * variance * math.log(2 / chance)) * (1 + 1e-9)
