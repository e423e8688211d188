"""Sums of all queries of a workload over the whole universe, and back: one table for each set of attributes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes, Table, marginal_tables, spread_sums
from equipoise.queries.restricted_tables import RestrictedTables

if TYPE_CHECKING:
    from equipoise.queries.compiled_workload import CompiledWorkload


def sum_over_universe(workload: CompiledWorkload, cells: Table) -> Table:
    """Returns every query's sum over `cells`, [|X|]: [k], of their type."""
    result = np.zeros(workload.query_count, dtype=cells.dtype)
    groups = {group.axes: group for group in workload.groups}
    marginals = workload.marginal_queries.queries_by_axes
    restricted: dict[Axes, list[RestrictedTables]] = defaultdict(list)
    for each in workload.restricted:
        restricted[each.table_axes].append(each)
    wanted = groups.keys() | marginals.keys() | restricted.keys()
    for axes, table in marginal_tables(cells.reshape(workload.schema_sizes), wanted):
        if axes in groups:
            np.add.at(result, groups[axes].queries, groups[axes].counts(table, workload.vectors))
        if axes in marginals:
            result[marginals[axes]] = table
        for each in restricted.get(axes, ()):
            each.add_counts(table, workload.vectors, result)
    return result


def combine_over_universe(workload: CompiledWorkload, coefficients: Table, universe: Table) -> None:
    """Adds the combination of all queries, with coefficients [k], to `universe`, [|X|], of the same type."""
    parts: defaultdict[Axes, list[Callable[[], Table]]] = defaultdict(list)
    for group in workload.groups:
        weights = coefficients[group.queries] * group.coefficients
        rows = np.flatnonzero(weights)
        parts[group.axes].append(partial(group.table, rows, weights[rows], workload.vectors))
    for axes, queries in workload.marginal_queries.queries_by_axes.items():
        parts[axes].append(partial(coefficients[queries].sum, axis=0))
    for each in workload.restricted:
        parts[each.table_axes].append(partial(each.table, coefficients, workload.vectors))
    spread_sums(parts, universe.reshape(workload.schema_sizes))


def combine_some_over_universe(
    workload: CompiledWorkload, queries: NDArray[np.int64], coefficients: NDArray[np.int64], universe: Table
) -> None:
    """Adds the combination of some queries, int64[j], with coefficients int64[j], to `universe`, int64[|X|].

    Args:
        workload: the compiled queries.
        queries: int64[j], the places of the queries that are combined.
        coefficients: int64[j], one for each of them.
        universe: int64[|X|], to which the combination is added in place.
    """
    parts: defaultdict[Axes, list[Callable[[], Table]]] = defaultdict(list)
    for group in workload.groups:
        rows, weights = group.weighted_rows(queries, coefficients)
        if len(rows):
            parts[group.axes].append(partial(group.table, rows, weights, workload.vectors))
    for axes, whole in workload.marginal_queries.sparse_tables(queries, coefficients).items():
        parts[axes].append(partial(np.asarray, whole))
    for each in workload.restricted:
        if len(each.tables_of(queries)[0]):
            parts[each.table_axes].append(partial(each.sparse_table, queries, coefficients, workload.vectors))
    spread_sums(parts, universe.reshape(workload.schema_sizes))
