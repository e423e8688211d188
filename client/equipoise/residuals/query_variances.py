"""The variance of every query of a workload by a residual measurement: public, and known before it is asked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.marginal_tables import Axes
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.product_terms import ProductTerms, condition_terms
from equipoise.residuals.variances import (
    cell_variances,
    largest_variance,
    product_covariances,
    product_variances,
)

BLOCK = 1 << 13  # products that are treated at once
MAX_BOXES = 64  # of one query, whose variance is added up pair by pair


def outside_of(workload: CompiledWorkload, family: ResidualFamily) -> list[int]:
    """Return the statements that no table of the family tells, ascending."""
    return [number for number, axes in enumerate(workload.statement_tables()) if not family.holds(axes)]


def query_variances(workload: CompiledWorkload, noise: ResidualNoise) -> NDArray[np.float64]:
    """Return the variance of each of k queries: float64[k], in records squared.

    Each error is sub-Gaussian with it. Exact but for queries of more than `MAX_BOXES` boxes, which have the largest
    of their tables. The family must hold every statement's table (`outside_of`).

    Args:
        workload: the queries.
        noise: of the measurement.
    """
    variances = np.zeros(workload.query_count)
    known: dict[Axes, NDArray[np.float64]] = {}
    for marginal in workload.marginals:
        if marginal.axes not in known:
            axes = tuple(sorted(marginal.axes))
            own = np.broadcast_to(cell_variances(noise, axes), [noise.sizes[axis] for axis in axes])
            known[marginal.axes] = own.transpose([axes.index(axis) for axis in marginal.axes]).reshape(-1)
        cells = known[marginal.axes]
        variances[marginal.first_query : marginal.first_query + len(cells)] = cells
    _add_conditions(workload, noise, variances)
    return np.asarray(np.maximum(variances, 0.0))  # rounding may have made a zero negative


def _add_conditions(workload: CompiledWorkload, noise: ResidualNoise, variances: NDArray[np.float64]) -> None:
    """Add the variances of all queries that are sums of boxes: sums over the pairs of their boxes."""
    kinds = list(condition_terms(workload))
    if not kinds:
        return
    queries = np.concatenate([terms.queries for terms in kinds])
    kind_of = np.repeat(np.arange(len(kinds)), [len(terms.queries) for terms in kinds])
    row_of = np.concatenate([np.arange(len(terms.queries)) for terms in kinds])
    boxes = np.bincount(queries, minlength=workload.query_count)
    for terms in kinds:
        _add_squares(noise, terms, np.flatnonzero(boxes[terms.queries] <= MAX_BOXES), variances)
    several = np.flatnonzero((boxes[queries] > 1) & (boxes[queries] <= MAX_BOXES))
    several = several[np.argsort(queries[several], kind="stable")]
    for first, second in _pairs(queries[several]):
        one, other = several[first], several[second]
        both = kind_of[one] * len(kinds) + kind_of[other]
        for number in np.unique(both).tolist():
            chosen = both == number
            left, right = kinds[number // len(kinds)], kinds[number % len(kinds)]
            _add_products(noise, left, row_of[one[chosen]], right, row_of[other[chosen]], variances)
    many = np.flatnonzero(boxes > MAX_BOXES)
    if many.size:
        sets = workload.statement_tables()
        statements = np.searchsorted(workload.statement_offsets, many, side="right") - 1
        for query, statement in zip(many.tolist(), statements.tolist(), strict=True):
            variances[query] = largest_variance(noise, sets[statement])


def _pairs(queries: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the places of all pairs of boxes of one query, in blocks. `queries`: of each box, ascending."""
    for apart in range(1, MAX_BOXES):
        first = np.flatnonzero(queries[:-apart] == queries[apart:])
        for start in range(0, len(first), BLOCK):
            yield first[start : start + BLOCK], first[start : start + BLOCK] + apart


def _add_squares(
    noise: ResidualNoise, terms: ProductTerms, rows: NDArray[np.int64], variances: NDArray[np.float64]
) -> None:
    for start in range(0, len(rows), BLOCK):
        part = rows[start : start + BLOCK]
        own = product_variances(noise, terms.axes, terms.factors(part))
        np.add.at(variances, terms.queries[part], terms.coefficients[part] ** 2 * own)


def _add_products(
    noise: ResidualNoise,
    left: ProductTerms,
    left_rows: NDArray[np.int64],
    right: ProductTerms,
    right_rows: NDArray[np.int64],
    variances: NDArray[np.float64],
) -> None:
    own = product_covariances(noise, left.axes, left.factors(left_rows), right.axes, right.factors(right_rows))
    weights = 2 * left.coefficients[left_rows] * right.coefficients[right_rows]
    np.add.at(variances, left.queries[left_rows], weights * own)
