"""Workloads made of others: several as one, or some statements of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.axis_weights import AxisWeights
from equipoise.queries.box_terms import Terms, Vectors
from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.marginals import MarginalRange
from equipoise.queries.restricted_tables import RestrictedTables


def concatenate(workloads: Sequence[CompiledWorkload]) -> CompiledWorkload:
    """Returns the statements of several workloads over the same schema, in order, as one workload.

    Args:
        workloads: at least one, all over the same schema.

    Returns:
        Its statements, and the queries within each, are numbered as if the workloads followed one another.

    Raises:
        ValueError: there is no workload, or two are over different schemas.
    """
    if not workloads or any(each.schema_sizes != workloads[0].schema_sizes for each in workloads):
        raise ValueError("there must be workloads, all over the same schema")
    vectors, renumberings = zip(
        *(_joined([each.vectors[axis] for each in workloads]) for axis in range(len(workloads[0].schema_sizes))),
        strict=True,
    )
    shifts = np.concatenate([[0], np.cumsum([each.query_count for each in workloads])])
    groups_of: dict[Axes, list[Terms]] = {}
    restricted: dict[tuple[Axes, Axes, AxisWeights | None], list[RestrictedTables]] = {}
    marginals: list[MarginalRange] = []
    for i, each in enumerate(workloads):
        shift = int(shifts[i])
        marginals.extend(MarginalRange(shift + part.first_query, part.axes) for part in each.marginals)
        for group in each.groups:
            numbers = _renumbered(group.vectors, group.axes, renumberings, i)
            groups_of.setdefault(group.axes, []).append(
                Terms(group.axes, group.queries + shift, group.coefficients, numbers)
            )
        for table in each.restricted:
            numbers = _renumbered(table.vectors, table.box_axes, renumberings, i)
            restricted.setdefault((table.axes, table.box_axes, table.weights), []).append(
                replace(table, first_queries=table.first_queries + shift, vectors=numbers)
            )
    offsets = [each.statement_offsets[1:] + shift for each, shift in zip(workloads, shifts[:-1], strict=True)]
    return CompiledWorkload(
        workloads[0].schema_sizes,
        np.concatenate([np.zeros(1, dtype=np.int64), *offsets]),
        np.concatenate([each.statement_sensitivities for each in workloads]),
        tuple(marginals),
        tuple(one_group(groups) for groups in groups_of.values()),
        vectors,
        tuple(
            replace(
                tables[0],
                first_queries=np.concatenate([each.first_queries for each in tables]),
                coefficients=np.concatenate([each.coefficients for each in tables]),
                vectors=np.concatenate([each.vectors for each in tables]),
            )
            for tables in restricted.values()
        ),
    )


def some_statements(workload: CompiledWorkload, chosen: Sequence[int]) -> CompiledWorkload:
    """Returns the workload of some of the statements.

    Args:
        workload: of which statements are taken.
        chosen: their places, ascending, each below the number of statements.

    Returns:
        A workload over the same schema; the queries within each statement keep their order.
    """
    sizes = np.diff(workload.statement_offsets)[list(chosen)]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    number = np.full(workload.query_count, -1, dtype=np.int64)
    for start, statement in zip(offsets.tolist(), chosen, strict=False):
        first, last = workload.statement_offsets[statement : statement + 2].tolist()
        number[first:last] = np.arange(start, start + last - first)
    groups = []
    for group in workload.groups:
        rows = np.flatnonzero(number[group.queries] >= 0)
        if rows.size:
            queries = number[group.queries[rows]]
            groups.append(Terms(group.axes, queries, group.coefficients[rows], group.vectors[rows]))
    restricted = []
    for table in workload.restricted:
        rows = np.flatnonzero(number[table.first_queries] >= 0)
        if rows.size:
            restricted.append(
                replace(
                    table,
                    first_queries=number[table.first_queries[rows]],
                    coefficients=table.coefficients[rows],
                    vectors=table.vectors[rows],
                )
            )
    return CompiledWorkload(
        workload.schema_sizes,
        offsets,
        workload.statement_sensitivities[list(chosen)],
        tuple(
            MarginalRange(int(number[each.first_query]), each.axes)
            for each in workload.marginals
            if number[each.first_query] >= 0
        ),
        tuple(groups),
        workload.vectors,
        tuple(restricted),
    )


def _renumbered(
    vectors: NDArray[np.int32], axes: Axes, renumberings: Sequence[list[NDArray[np.int64]]], part: int
) -> NDArray[np.int32]:
    numbers = np.empty_like(vectors)
    for place, axis in enumerate(axes):
        numbers[:, place] = renumberings[axis][part][vectors[:, place]]
    return numbers


def _joined(parts: list[Vectors]) -> tuple[Vectors, list[NDArray[np.int64]]]:
    """Returns the different vectors of all parts, and for each part the new numbers of its vectors."""
    stacked = np.concatenate([part.bits for part in parts])
    if not len(stacked):
        return parts[0], [np.zeros(0, dtype=np.int64) for _ in parts]
    bits, numbers = np.unique(stacked, axis=0, return_inverse=True)
    return Vectors(parts[0].size, bits), np.split(numbers.reshape(-1), np.cumsum([len(p.bits) for p in parts])[:-1])


def one_group(groups: list[Terms]) -> Terms:
    """Returns the terms of several groups over the same axes as one group.

    Args:
        groups: at least one, all over the same axes and with places in the same vectors.
    """
    return Terms(
        groups[0].axes,
        np.concatenate([group.queries for group in groups]),
        np.concatenate([group.coefficients for group in groups]),
        np.concatenate([group.vectors for group in groups]),
    )
