"""A statement taken apart into product queries: the variance of each is known of a measurement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.box_terms import Terms
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.marginals import MarginalRange
from equipoise.queries.restricted_tables import RestrictedTables
from equipoise.queries.workload_compiler import CompiledWorkload


@dataclass(frozen=True, eq=False)
class ProductTerms:
    """Boxes over one set of axes, each a term of a query: term t is `coefficients[t]` times its box.

    Attributes:
        axes: ascending.
        queries: int64[terms], the query that each is a term of.
        coefficients: int64[terms].
        numbers: int64[terms, axes], which of an axis's vectors each box has.
        vectors: for each axis the categories that its vectors take, uint8[vectors, size].
    """

    axes: Axes
    queries: NDArray[np.int64]
    coefficients: NDArray[np.int64]
    numbers: NDArray[np.int64]
    vectors: tuple[NDArray[np.uint8], ...]


def needed_axes(statement: CompiledWorkload) -> Axes:
    """Return the axes, ascending, of the table that tells a statement. Axes of one category tell nothing apart."""
    used = {axis for group in statement.groups for axis in group.axes}
    used |= {axis for marginal in statement.marginals for axis in marginal.axes}
    used |= {axis for tables in statement.restricted for axis in tables.table_axes}
    return tuple(sorted(axis for axis in used if statement.schema_sizes[axis] > 1))


def over_table(statement: CompiledWorkload, axes: Axes) -> CompiledWorkload:
    """Return the statement over a table of its needed axes: all others have one category there."""
    sizes = tuple(size if axis in axes else 1 for axis, size in enumerate(statement.schema_sizes))
    return replace(statement, schema_sizes=sizes)


def product_terms(statement: CompiledWorkload) -> Iterator[ProductTerms]:
    """Yield all terms of a statement's queries. Terms over no axes are parts of all records."""
    for group in statement.groups:
        yield _of_boxes(statement, group)
    for marginal in statement.marginals:
        yield _of_cells(statement.schema_sizes, marginal)
    for tables in statement.restricted:
        yield _of_restricted(statement, tables)


def _of_boxes(statement: CompiledWorkload, group: Terms) -> ProductTerms:
    vectors = tuple(_unpacked(statement, axis) for axis in group.axes)
    return ProductTerms(group.axes, group.queries, group.coefficients, group.vectors.astype(np.int64), vectors)


def _of_cells(sizes: tuple[int, ...], marginal: MarginalRange) -> ProductTerms:
    """Return a marginal's cells: along every axis the vectors take one category each."""
    axes = tuple(sorted(marginal.axes))
    cells = np.indices([sizes[axis] for axis in marginal.axes], dtype=np.int64).reshape(len(axes), -1)
    numbers = cells[[marginal.axes.index(axis) for axis in axes]].T
    queries = marginal.first_query + np.arange(len(numbers), dtype=np.int64)
    return ProductTerms(axes, queries, np.ones_like(queries), numbers, tuple(_single(sizes[axis]) for axis in axes))


def _of_restricted(statement: CompiledWorkload, tables: RestrictedTables) -> ProductTerms:
    """Return cells times boxes. On an axis of both, a vector is a category and what a box allows of it."""
    axes, sizes = tables.table_axes, tables.sizes
    cells = np.indices(tables.shape, dtype=np.int64).reshape(len(tables.axes), -1)
    shape = len(tables.first_queries), tables.cells
    numbers, vectors = [], []
    for axis in axes:
        number, own = np.zeros(shape, dtype=np.int64), np.ones((1, sizes[axis]), dtype=np.uint8)
        if axis in tables.box_axes:
            own = _unpacked(statement, axis)
            number += tables.vectors[:, tables.box_axes.index(axis), None]
        if axis in tables.axes:
            own = (own[:, None, :] & _single(sizes[axis])).reshape(-1, sizes[axis])
            number = number * sizes[axis] + cells[tables.axes.index(axis)]
        numbers.append(number.reshape(-1))
        vectors.append(own)
    queries = (tables.first_queries[:, None] + np.arange(tables.cells)).reshape(-1)
    coefficients = np.repeat(tables.coefficients, tables.cells)
    return ProductTerms(axes, queries, coefficients, np.stack(numbers, axis=1), tuple(vectors))


def _unpacked(statement: CompiledWorkload, axis: int) -> NDArray[np.uint8]:
    vectors = statement.vectors[axis]
    return vectors.rows(np.arange(len(vectors.bits), dtype=np.int32))


def _single(size: int) -> NDArray[np.uint8]:
    return np.eye(size, dtype=np.uint8)
