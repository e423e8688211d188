"""What a residual measurement says about every query of a workload: a count, and the variance of its noise.

Both come from whole numbers by elementwise arithmetic, so they are the same on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.axis_weights import EXACT_BITS as WEIGHTED_BITS
from equipoise.queries.axis_weights import WHOLE
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.residuals.query_variances import query_variances
from equipoise_server.mechanisms.residuals.measurement import ExactTable, Measured

EXACT_BITS = 52  # whole units of a table sum to less than 2^53
ROUNDING = 2.0**-40  # of all that is summed: far more than doubles can err


@dataclass(frozen=True, eq=False)
class Estimates:
    """Unbiased counts of k queries, and what is known of their errors.

    Attributes:
        counts: float64[k], in records; they may be negative.
        variances: float64[k], in records squared: each error is sub-Gaussian with it. See `query_variances`.
        slack: float64[k], in records: more than rounding can have moved a count; of weighted queries the rounding
            of the truth, to whole records, too.
    """

    counts: NDArray[np.float64]
    variances: NDArray[np.float64]
    slack: NDArray[np.float64]


def estimates_of(workload: CompiledWorkload, measured: Measured) -> Estimates:
    """Return the estimate of every query. The family must hold every statement's table (`outside_of`)."""
    queries = workload.query_count
    estimates = Estimates(np.zeros(queries), query_variances(workload, measured.noise), np.zeros(queries))
    _add_marginals(workload, measured, estimates)
    _add_counts(workload, measured, estimates)
    return estimates


def _add_marginals(workload: CompiledWorkload, measured: Measured, estimates: Estimates) -> None:
    known: dict[Axes, tuple[NDArray[np.float64], float]] = {}
    for marginal in workload.marginals:
        axes = tuple(sorted(marginal.axes))
        if marginal.axes not in known:
            table = measured.table(axes)
            order = [axes.index(axis) for axis in marginal.axes]
            counts = table.counts()
            known[marginal.axes] = counts.transpose(order).reshape(-1), _total(counts) * ROUNDING
        counts, slack = known[marginal.axes]
        own = slice(marginal.first_query, marginal.first_query + len(counts))
        estimates.counts[own], estimates.slack[own] = counts, slack


def _add_counts(workload: CompiledWorkload, measured: Measured, estimates: Estimates) -> None:
    """Add the counts of conditions, and of marginals of some records only."""
    for group in workload.groups:
        units, unit, slack = _in_units(measured.table(group.axes))
        np.add.at(estimates.counts, group.queries, group.counts(units, workload.vectors) * unit)
        np.add.at(estimates.slack, group.queries, np.abs(group.coefficients) * slack)
    for tables in workload.restricted:
        table = measured.table(tables.table_axes)
        if tables.weights is None:
            units, unit, slack = _in_units(table)
        else:
            units, unit, slack = _in_units(table, WEIGHTED_BITS - 1)
            unit = unit / WHOLE
        counted = np.zeros(workload.query_count, dtype=np.int64)
        tables.add_counts(units, workload.vectors, counted)
        queries = tables.first_queries[:, None] + np.arange(tables.cells)
        np.add.at(estimates.slack, queries, np.abs(tables.coefficients)[:, None] * slack)
        estimates.counts[:] += counted * unit
    estimates.slack[workload.weighted] += 1


def _in_units(table: ExactTable, bits: int = EXACT_BITS) -> tuple[NDArray[np.int64], float, float]:
    """Return a table in whole units of a power of two, what one is worth, and what rounding may move a sum by.

    The absolute values of the units sum to less than twice 2^bits. Each cell is at most half a unit away.
    """
    counts = table.counts()
    total = _total(counts)
    unit = 2.0 ** (math.frexp(total + 1)[1] - bits)
    return np.rint(counts / unit).astype(np.int64), unit, total * ROUNDING + counts.size * unit / 2


def _total(counts: NDArray[np.float64]) -> float:
    """Return the sum of the absolute values, correctly rounded, so that it is the same on every machine."""
    return math.fsum(np.abs(counts).ravel().tolist())
