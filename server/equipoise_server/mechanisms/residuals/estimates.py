"""What a residual measurement says about every query of a workload: a count, and the variance of its noise.

Both come from whole numbers by elementwise arithmetic, so they are the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.box_terms import Terms
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.mechanisms.residuals.family import ResidualFamily
from equipoise_server.mechanisms.residuals.measurement import ExactTable, Measured
from equipoise_server.mechanisms.residuals.variances import (
    cell_variances,
    largest_variance,
    product_covariances,
    product_variances,
)

EXACT_BITS = 52  # whole units of a table sum to less than 2^53
ROUNDING = 2.0**-40  # of all that is summed: far more than these units and doubles can err
BLOCK = 1 << 13  # products that are treated at once
MAX_BOXES = 64  # of one predicate, whose variance is added up pair by pair


@dataclass(frozen=True, eq=False)
class Estimates:
    """Unbiased counts of k queries, and what is known of their errors.

    Attributes:
        counts: float64[k], in records; they may be negative.
        variances: float64[k], in records squared: each error is sub-Gaussian with it. Exact but for predicates of
            more than `MAX_BOXES` boxes, which have the largest of their tables.
        slack: float64[k], in records: more than rounding can have moved a count.
    """

    counts: NDArray[np.float64]
    variances: NDArray[np.float64]
    slack: NDArray[np.float64]


def outside_of(workload: CompiledWorkload, family: ResidualFamily) -> list[int]:
    """Return the statements that no table of the family tells, ascending."""
    sets = workload.statement_tables()
    return [number for number, axes in enumerate(sets) if axes is None or not family.holds(axes)]


def estimates_of(workload: CompiledWorkload, measured: Measured) -> Estimates:
    """Return the estimate of every query. The family must hold every statement's table (`outside_of`)."""
    queries = workload.query_count
    estimates = Estimates(np.zeros(queries), np.zeros(queries), np.zeros(queries))
    _add_marginals(workload, measured, estimates)
    for group in workload.groups:
        _add_counts(workload, group, measured, estimates)
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


def _add_counts(workload: CompiledWorkload, group: Terms, measured: Measured, estimates: Estimates) -> None:
    units, unit, slack = _in_units(measured.table(group.axes))
    np.add.at(estimates.counts, group.queries, group.counts(units, workload.vectors) * unit)
    np.add.at(estimates.slack, group.queries, np.abs(group.coefficients) * slack)


def _in_units(table: ExactTable) -> tuple[NDArray[np.int64], float, float]:
    """Return a table in whole units of a power of two, what one is worth, and what rounding may move a sum by."""
    counts = table.counts()
    total = _total(counts)
    unit = 2.0 ** (math.frexp(total + 1)[1] - EXACT_BITS)
    return np.rint(counts / unit).astype(np.int64), unit, total * ROUNDING


def _total(counts: NDArray[np.float64]) -> float:
    """Return the sum of the absolute values, correctly rounded, so that it is the same on every machine."""
    return math.fsum(np.abs(counts).ravel().tolist())


def _add_variances(workload: CompiledWorkload, measured: Measured, variances: NDArray[np.float64]) -> None:
    """Add the variances of all predicates: sums over the pairs of their boxes."""
    groups = workload.groups
    if not groups:
        return
    queries = np.concatenate([group.queries for group in groups])
    group_of = np.repeat(np.arange(len(groups)), [len(group.queries) for group in groups])
    row_of = np.concatenate([np.arange(len(group.queries)) for group in groups])
    boxes = np.bincount(queries, minlength=workload.query_count)
    for group in groups:
        _add_squares(workload, measured, group, np.flatnonzero(boxes[group.queries] <= MAX_BOXES), variances)
    several = np.flatnonzero((boxes[queries] > 1) & (boxes[queries] <= MAX_BOXES))
    several = several[np.argsort(queries[several], kind="stable")]
    for first, second in _pairs(queries[several]):
        one, other = several[first], several[second]
        kinds = group_of[one] * len(groups) + group_of[other]
        for kind in np.unique(kinds).tolist():
            chosen = kinds == kind
            left, right = groups[kind // len(groups)], groups[kind % len(groups)]
            _add_products(workload, measured, left, row_of[one[chosen]], right, row_of[other[chosen]], variances)
    if (boxes > MAX_BOXES).any():
        sets = workload.statement_tables()
        statements = (
            np.searchsorted(workload.statement_offsets, np.flatnonzero(boxes > MAX_BOXES), side="right") - 1
        )
        for query, statement in zip(np.flatnonzero(boxes > MAX_BOXES).tolist(), statements.tolist(), strict=True):
            variances[query] = largest_variance(measured.noise, sets[statement] or ())


def _pairs(queries: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the places of all pairs of boxes of one query, in blocks. `queries`: of each box, ascending."""
    for apart in range(1, MAX_BOXES):
        first = np.flatnonzero(queries[:-apart] == queries[apart:])
        for start in range(0, len(first), BLOCK):
            yield first[start : start + BLOCK], first[start : start + BLOCK] + apart


def _add_squares(
    workload: CompiledWorkload,
    measured: Measured,
    group: Terms,
    rows: NDArray[np.int64],
    variances: NDArray[np.float64],
) -> None:
    for start in range(0, len(rows), BLOCK):
        part = rows[start : start + BLOCK]
        own = product_variances(measured.noise, group.axes, _factors(workload, group, part))
        np.add.at(variances, group.queries[part], group.coefficients[part] ** 2 * own)


def _add_products(
    workload: CompiledWorkload,
    measured: Measured,
    left: Terms,
    left_rows: NDArray[np.int64],
    right: Terms,
    right_rows: NDArray[np.int64],
    variances: NDArray[np.float64],
) -> None:
    own = product_covariances(
        measured.noise,
        left.axes,
        _factors(workload, left, left_rows),
        right.axes,
        _factors(workload, right, right_rows),
    )
    weights = 2 * left.coefficients[left_rows] * right.coefficients[right_rows]
    np.add.at(variances, left.queries[left_rows], weights * own)


def _factors(workload: CompiledWorkload, group: Terms, rows: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    numbers = group.vectors[rows]
    return [
        workload.vectors[axis].rows(numbers[:, place]).astype(np.float64) for place, axis in enumerate(group.axes)
    ]
