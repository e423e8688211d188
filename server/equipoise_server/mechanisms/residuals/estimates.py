"""What a residual measurement says about every query of a workload: a count, and the variance of its noise.

Both come from whole numbers by elementwise arithmetic, so they are the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.axis_weights import EXACT_BITS as WEIGHTED_BITS
from equipoise.queries.axis_weights import WHOLE
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.mechanisms.residuals.family import ResidualFamily
from equipoise_server.mechanisms.residuals.measurement import ExactTable, Measured
from equipoise_server.mechanisms.residuals.product_terms import ProductTerms, condition_terms
from equipoise_server.mechanisms.residuals.variances import (
    cell_variances,
    largest_variance,
    product_covariances,
    product_variances,
)

EXACT_BITS = 52  # whole units of a table sum to less than 2^53
ROUNDING = 2.0**-40  # of all that is summed: far more than these units and doubles can err
BLOCK = 1 << 13  # products that are treated at once
MAX_BOXES = 64  # of one query, whose variance is added up pair by pair


@dataclass(frozen=True, eq=False)
class Estimates:
    """Unbiased counts of k queries, and what is known of their errors.

    Attributes:
        counts: float64[k], in records; they may be negative.
        variances: float64[k], in records squared: each error is sub-Gaussian with it. Exact but for queries of
            more than `MAX_BOXES` boxes, which have the largest of their tables.
        slack: float64[k], in records: more than rounding can have moved a count; of weighted queries the rounding
            of the truth, to whole records, too.
    """

    counts: NDArray[np.float64]
    variances: NDArray[np.float64]
    slack: NDArray[np.float64]


def outside_of(workload: CompiledWorkload, family: ResidualFamily) -> list[int]:
    """Return the statements that no table of the family tells, ascending."""
    return [number for number, axes in enumerate(workload.statement_tables()) if not family.holds(axes)]


def estimates_of(workload: CompiledWorkload, measured: Measured) -> Estimates:
    """Return the estimate of every query. The family must hold every statement's table (`outside_of`)."""
    queries = workload.query_count
    estimates = Estimates(np.zeros(queries), np.zeros(queries), np.zeros(queries))
    _add_marginals(workload, measured, estimates)
    _add_counts(workload, measured, estimates)
    _add_variances(workload, measured, estimates.variances)
    np.maximum(estimates.variances, 0.0, out=estimates.variances)  # rounding may have made a zero negative
    return estimates


def _add_marginals(workload: CompiledWorkload, measured: Measured, estimates: Estimates) -> None:
    known: dict[Axes, tuple[NDArray[np.float64], NDArray[np.float64], float]] = {}
    for marginal in workload.marginals:
        axes = tuple(sorted(marginal.axes))
        if marginal.axes not in known:
            table = measured.table(axes)
            order = [axes.index(axis) for axis in marginal.axes]
            variances = np.broadcast_to(cell_variances(measured.noise, axes), table.numerators.shape)
            counts = table.counts()
            known[marginal.axes] = (
                counts.transpose(order).reshape(-1),
                variances.transpose(order).reshape(-1),
                _total(counts) * ROUNDING,
            )
        counts, variances, slack = known[marginal.axes]
        own = slice(marginal.first_query, marginal.first_query + len(counts))
        estimates.counts[own], estimates.variances[own], estimates.slack[own] = counts, variances, slack


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
            unit, slack = unit / WHOLE, slack + units.size * unit
        counted = np.zeros(workload.query_count, dtype=np.int64)
        tables.add_counts(units, workload.vectors, counted)
        queries = tables.first_queries[:, None] + np.arange(tables.cells)
        np.add.at(estimates.slack, queries, np.abs(tables.coefficients)[:, None] * slack)
        estimates.counts[:] += counted * unit
    estimates.slack[workload.weighted] += 1


def _in_units(table: ExactTable, bits: int = EXACT_BITS) -> tuple[NDArray[np.int64], float, float]:
    """Return a table in whole units of a power of two, what one is worth, and what rounding may move a sum by.

    The absolute values of the units sum to less than twice 2^bits.
    """
    counts = table.counts()
    total = _total(counts)
    unit = 2.0 ** (math.frexp(total + 1)[1] - bits)
    return np.rint(counts / unit).astype(np.int64), unit, total * ROUNDING


def _total(counts: NDArray[np.float64]) -> float:
    """Return the sum of the absolute values, correctly rounded, so that it is the same on every machine."""
    return math.fsum(np.abs(counts).ravel().tolist())


def _add_variances(workload: CompiledWorkload, measured: Measured, variances: NDArray[np.float64]) -> None:
    """Add the variances of all queries that are sums of boxes: sums over the pairs of their boxes."""
    kinds = list(condition_terms(workload))
    if not kinds:
        return
    queries = np.concatenate([terms.queries for terms in kinds])
    kind_of = np.repeat(np.arange(len(kinds)), [len(terms.queries) for terms in kinds])
    row_of = np.concatenate([np.arange(len(terms.queries)) for terms in kinds])
    boxes = np.bincount(queries, minlength=workload.query_count)
    for terms in kinds:
        _add_squares(measured, terms, np.flatnonzero(boxes[terms.queries] <= MAX_BOXES), variances)
    several = np.flatnonzero((boxes[queries] > 1) & (boxes[queries] <= MAX_BOXES))
    several = several[np.argsort(queries[several], kind="stable")]
    for first, second in _pairs(queries[several]):
        one, other = several[first], several[second]
        both = kind_of[one] * len(kinds) + kind_of[other]
        for number in np.unique(both).tolist():
            chosen = both == number
            left, right = kinds[number // len(kinds)], kinds[number % len(kinds)]
            _add_products(measured, left, row_of[one[chosen]], right, row_of[other[chosen]], variances)
    many = np.flatnonzero(boxes > MAX_BOXES)
    if many.size:
        sets = workload.statement_tables()
        statements = np.searchsorted(workload.statement_offsets, many, side="right") - 1
        for query, statement in zip(many.tolist(), statements.tolist(), strict=True):
            variances[query] = largest_variance(measured.noise, sets[statement])


def _pairs(queries: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the places of all pairs of boxes of one query, in blocks. `queries`: of each box, ascending."""
    for apart in range(1, MAX_BOXES):
        first = np.flatnonzero(queries[:-apart] == queries[apart:])
        for start in range(0, len(first), BLOCK):
            yield first[start : start + BLOCK], first[start : start + BLOCK] + apart


def _add_squares(
    measured: Measured, terms: ProductTerms, rows: NDArray[np.int64], variances: NDArray[np.float64]
) -> None:
    for start in range(0, len(rows), BLOCK):
        part = rows[start : start + BLOCK]
        own = product_variances(measured.noise, terms.axes, terms.factors(part))
        np.add.at(variances, terms.queries[part], terms.coefficients[part] ** 2 * own)


def _add_products(
    measured: Measured,
    left: ProductTerms,
    left_rows: NDArray[np.int64],
    right: ProductTerms,
    right_rows: NDArray[np.int64],
    variances: NDArray[np.float64],
) -> None:
    own = product_covariances(
        measured.noise, left.axes, left.factors(left_rows), right.axes, right.factors(right_rows)
    )
    weights = 2 * left.coefficients[left_rows] * right.coefficients[right_rows]
    np.add.at(variances, left.queries[left_rows], weights * own)
