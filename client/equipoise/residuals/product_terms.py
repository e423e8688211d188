"""Statements taken apart into product queries: the variance of each is known of a measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.axis_weights import WHOLE
from equipoise.queries.box_terms import Terms
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.marginals import MarginalRange
from equipoise.queries.restricted_tables import RestrictedTables
from equipoise.queries.workload_compiler import CompiledWorkload

Rows = NDArray[np.int64]
Factors = Callable[[Rows], list[NDArray[np.float64]]]


@dataclass(frozen=True, eq=False)
class ProductTerms:
    """Boxes over one set of axes, each a term of a query: term t is `coefficients[t]` times its box.

    Attributes:
        axes: ascending, without axes of one category.
        queries: int64[terms], the query that each is a term of.
        coefficients: int64[terms].
        factors: gives of some terms, int64[r], for each axis what their boxes take of it: float64[r, size], 0 or 1,
            or weights in [0, 1].
    """

    axes: Axes
    queries: NDArray[np.int64]
    coefficients: NDArray[np.int64]
    factors: Factors


def product_terms(workload: CompiledWorkload) -> Iterator[ProductTerms]:
    """Yield all terms of a workload's queries. Terms over no axes are parts of all records."""
    yield from condition_terms(workload)
    for marginal in workload.marginals:
        yield _of_cells(workload.schema_sizes, marginal)


def condition_terms(workload: CompiledWorkload) -> Iterator[ProductTerms]:
    """Yield the terms of all queries but the cells of marginals of all records."""
    for group in workload.groups:
        yield _of_boxes(workload, group)
    for tables in workload.restricted:
        yield _of_restricted(workload, tables)


def _of_boxes(workload: CompiledWorkload, group: Terms) -> ProductTerms:
    def factors(rows: Rows) -> list[NDArray[np.float64]]:
        return [_vector_rows(workload, axis, group.vectors[rows, place]) for place, axis in enumerate(group.axes)]

    return ProductTerms(group.axes, group.queries, group.coefficients, factors)


def _of_cells(sizes: tuple[int, ...], marginal: MarginalRange) -> ProductTerms:
    """Return a marginal's cells: along every axis the boxes take one category each."""
    axes, shape = _telling(marginal.axes, sizes), tuple(sizes[axis] for axis in marginal.axes)

    def factors(rows: Rows) -> list[NDArray[np.float64]]:
        cells = dict(zip(marginal.axes, np.unravel_index(rows, shape), strict=True))
        return [_single(sizes[axis], cells[axis]) for axis in axes]

    queries = np.arange(marginal.first_query, marginal.first_query + int(np.prod(shape)), dtype=np.int64)
    return ProductTerms(axes, queries, np.ones_like(queries), factors)


def _of_restricted(workload: CompiledWorkload, tables: RestrictedTables) -> ProductTerms:
    """Return cells times boxes, table by table: on an axis of both, a category where the box allows it.

    Weights are part of the box.
    """
    axes = _telling(tables.table_axes, tables.sizes)

    def factors(rows: Rows) -> list[NDArray[np.float64]]:
        own, cell = np.divmod(rows, tables.cells)
        places = np.unravel_index(cell, tables.shape) if tables.shape else ()
        cells = dict(zip(tables.axes, places, strict=True))
        taken = []
        for axis in axes:
            factor = np.ones((len(rows), tables.sizes[axis]))
            if axis in tables.box_axes:
                factor *= _vector_rows(workload, axis, tables.vectors[own, tables.box_axes.index(axis)])
            if axis in cells:
                factor *= _single(tables.sizes[axis], cells[axis])
            if tables.weights is not None and tables.weights.axis == axis:
                factor *= tables.weights.array / WHOLE
            taken.append(factor)
        return taken

    queries = (tables.first_queries[:, None] + np.arange(tables.cells)).reshape(-1)
    return ProductTerms(axes, queries, np.repeat(tables.coefficients, tables.cells), factors)


def _telling(axes: Axes, sizes: tuple[int, ...]) -> Axes:
    """Axes of one category tell nothing apart, and no residual is over one."""
    return tuple(sorted(axis for axis in axes if sizes[axis] > 1))


def _vector_rows(workload: CompiledWorkload, axis: int, numbers: NDArray[np.int32]) -> NDArray[np.float64]:
    return workload.vectors[axis].rows(numbers).astype(np.float64)


def _single(size: int, categories: NDArray[np.intp]) -> NDArray[np.float64]:
    return np.asarray(categories[:, None] == np.arange(size), dtype=np.float64)
