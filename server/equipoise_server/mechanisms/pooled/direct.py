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
COARSER = EXACT_BITS + 1 - WEIGHTED_BITS  # bits that are cut off where cells are added up by weights
ROUNDING = 2.0**-40  # of everything summed: far more than doubles and integer units can err


@dataclass(frozen=True)
class DirectAnswers:
    """Counts float64[k] from the measured tables, and what they may err by, float64[k], in records.

    Each cell of a whole table errs by more than its reach with at most the chance that this was made for, and so do
    all queries of any other statement together. `deviation`: float64[k], the standard deviation of the noise, in
    records.
    """

    counts: NDArray[np.float64]
    reach: NDArray[np.float64]
    deviation: NDArray[np.float64]


def direct_answers(
    workload: CompiledWorkload, estimates: Mapping[Axes, TableEstimate], chance: float
) -> DirectAnswers:
    """Return what `estimates`, one for each set that is asked about and in the family, say about every query.

    `chance`: at most with this one an estimate is beyond its reach, as `DirectAnswers` says.
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
    coarse = np.array([_coarse_slack(estimated) for estimated in estimates.values()] + [0.0])

    # A query that selects j of the N cells of its table selects j |X| / N records of the universe, and its squares
    # sum to j (1 - j / N). Where it weighs cells by w in [0, 1], sum w^2 - (sum w)^2 / N is at most that of
    # j = sum w, of which the whole part is known.
    selected = workload.counts(np.ones(math.prod(sizes), dtype=np.int64))
    of_table = cells[set_of_query]
    picked = selected * of_table // math.prod(sizes)
    picked = np.clip(of_table / 2, picked, picked + workload.weighted)
    spread = picked * (1 - picked / of_table)

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
                    some.add_counts(table >> COARSER, workload.vectors, counted)
                    counts += counted * (unit * 2.0**COARSER / WHOLE)
    known = set_of_query >= 0
    deviation = np.zeros(queries)
    deviation[known] = np.sqrt(variances[set_of_query[known]] * spread[known])
    far = deviations_of_reach(workload, chance) * deviation * (1 + 1e-9)
    # The truth of a weighted query is rounded down to whole records.
    slack = slack[set_of_query] + np.where(workload.weighted, 1 + coarse[set_of_query], 0.0)
    reach[known] = (far + slack)[known]
    return DirectAnswers(counts, reach, deviation)


def deviations_of_reach(workload: CompiledWorkload, chance: float) -> NDArray[np.float64]:
    """Return how many standard deviations each query may err by, float64[k], so that a union bound holds.

    A cell of a whole table is beyond that with a probability of at most `chance`, however often it is asked for.
    All queries of any other statement have as much together: a table of some records alone, or sums by other
    attributes, is no table of the family.

    Args:
        workload: k queries.
        chance: of one cell, and of one statement.
    """
    sizes = np.diff(workload.statement_offsets)
    sharing = np.repeat(sizes, sizes)
    for marginal in workload.marginals:
        cells = math.prod(workload.schema_sizes[axis] for axis in marginal.axes)
        sharing[marginal.first_query : marginal.first_query + cells] = 1
    counts, places = np.unique(sharing, return_inverse=True)
    multiples = [math.sqrt(2 * math.log(2 * count / chance)) for count in counts.tolist()]
    return np.asarray(np.array(multiples)[places])


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


def _coarse_slack(estimate: TableEstimate) -> float:
    """Return what a sum by weights may lose, in records: less than a coarser unit for each cell."""
    return estimate.counts.size * _in_units(estimate)[1] * 2.0**COARSER


def _slack(estimate: TableEstimate) -> float:
    return float(np.abs(estimate.counts).sum()) * ROUNDING
