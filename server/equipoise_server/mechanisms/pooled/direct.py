"""Estimates of every query from the measured tables alone: a value, and how far it may be from the truth.

Only queries whose statement is about a table of the family are told anything; the others get an infinite reach.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.axis_weights import EXACT_BITS as WEIGHTED_BITS
from equipoise.queries.axis_weights import WHOLE
from equipoise.queries.box_terms import Terms
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.mechanisms.pooled.measured import TableEstimate

EXACT_BITS = 52  # integer sums of estimates stay within 2^53
ROUNDING = 2.0**-40  # of everything summed: far more than doubles and integer units can err


@dataclass(frozen=True)
class DirectAnswers:
    """Counts float64[k] from the measured tables, and what they may err by, float64[k], in records.

    Each errs by more than its reach with at most the chance that this was made for. `deviation`: float64[k], the
    standard deviation of the noise, in records.
    """

    counts: NDArray[np.float64]
    reach: NDArray[np.float64]
    deviation: NDArray[np.float64]


def direct_answers(
    workload: CompiledWorkload, estimates: Mapping[Axes, TableEstimate], chance: float
) -> DirectAnswers:
    """Return what `estimates`, one for each set that is asked about and in the family, say about every query.

    `chance`: at most with this one an estimate is beyond its reach.
    """
    sizes, queries = workload.schema_sizes, workload.query_count
    sets = workload.statement_tables()
    counts, reach = np.zeros(queries), np.full(queries, np.inf)
    set_of_statement = _numbered(sets, estimates)
    statement_sizes = np.diff(workload.statement_offsets)
    set_of_query = np.repeat(set_of_statement, statement_sizes)
    variances = np.array([estimated.variance for estimated in estimates.values()] + [np.inf])
    cells = np.array([estimated.counts.size for estimated in estimates.values()] + [1], dtype=np.int64)
    slack = np.array([_slack(estimated) for estimated in estimates.values()] + [0.0])

    # A query that selects j of the N cells of its table selects j |X| / N records of the universe. Where it weighs
    # them by w in [0, 1], sum w^2 - (sum w)^2 / N is at most that of j = sum w, which is rounded down here.
    selected = workload.counts(np.ones(math.prod(sizes), dtype=np.int64))
    of_table = cells[set_of_query]
    picked = selected * of_table // math.prod(sizes)
    spread = np.where(workload.weighted, np.minimum(picked + 1, of_table / 4), picked * (1 - picked / of_table))

    starts = [marginal.first_query for marginal in workload.marginals]
    statements = np.searchsorted(workload.statement_offsets, starts)
    flat: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for statement, marginal in zip(statements.tolist(), workload.marginals, strict=True):
        axes = sets[statement]
        own = slice(marginal.first_query, marginal.first_query + int(statement_sizes[statement]))
        if axes in estimates:
            if marginal.axes not in flat:
                order = [axes.index(axis) for axis in marginal.axes if axis in axes]
                flat[marginal.axes] = estimates[axes].counts.transpose(order).reshape(-1)
            counts[own] = flat[marginal.axes]
    for number, (axes, estimated) in enumerate(estimates.items()):
        units, unit = _in_units(estimated)
        for group in workload.groups:
            rows = np.flatnonzero(set_of_query[group.queries] == number)
            if rows.size:
                terms = Terms(group.axes, group.queries[rows], group.coefficients[rows], group.vectors[rows])
                table = _summed(units, axes, group.axes, sizes)
                np.add.at(counts, terms.queries, terms.counts(table, workload.vectors) * unit)
        for tables in workload.restricted:
            rows = np.flatnonzero(set_of_query[tables.first_queries] == number)
            if rows.size:
                some = replace(
                    tables,
                    first_queries=tables.first_queries[rows],
                    coefficients=tables.coefficients[rows],
                    vectors=tables.vectors[rows],
                )
                counted = np.zeros(queries, dtype=np.int64)
                table = _summed(units, axes, tables.table_axes, sizes)
                if tables.weights is None:
                    some.add_counts(table, workload.vectors, counted)
                    counts += counted * unit
                else:
                    # In coarser units, of which the sums by weights are exact.
                    coarse = table >> EXACT_BITS + 1 - WEIGHTED_BITS
                    some.add_counts(coarse, workload.vectors, counted)
                    counts += counted * (unit * 2.0 ** (EXACT_BITS + 1 - WEIGHTED_BITS) / WHOLE)
    known = set_of_query >= 0
    deviation = np.zeros(queries)
    deviation[known] = np.sqrt(variances[set_of_query[known]] * spread[known])
    far = math.sqrt(2 * math.log(2 / chance)) * deviation[known] * (1 + 1e-9)
    reach[known] = far + slack[set_of_query[known]]
    return DirectAnswers(counts, reach, deviation)


def _numbered(sets: list[Axes], estimates: Mapping[Axes, TableEstimate]) -> NDArray[np.int64]:
    numbers = {axes: number for number, axes in enumerate(estimates)}
    return np.array([numbers.get(axes, -1) for axes in sets], dtype=np.int64)


def _in_units(estimate: TableEstimate) -> tuple[NDArray[np.int64], float]:
    """Return a table in whole units of a power of two, and what one is worth."""
    unit = 2.0 ** (math.frexp(float(np.abs(estimate.counts).sum()) + 1)[1] - EXACT_BITS)
    return np.rint(estimate.counts / unit).astype(np.int64), unit


def _summed(units: NDArray[np.int64], axes: Axes, kept: Axes, sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """Return a table over `axes` summed down to those of them in `kept`, with a dimension for each of `kept`."""
    others = tuple(place for place, axis in enumerate(axes) if axis not in kept)
    return np.asarray(units.sum(axis=others, dtype=np.int64)).reshape([sizes[axis] for axis in kept])


def _slack(estimate: TableEstimate) -> float:
    return float(np.abs(estimate.counts).sum()) * ROUNDING
