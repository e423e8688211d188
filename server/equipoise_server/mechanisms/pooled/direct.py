"""Estimates of every query from the measured tables alone: a value, and how far it may be from the truth.

Only queries whose statement is about a table of the family are told anything; the others get an infinite reach.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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

    # A query that selects j of the N cells of its table selects j |X| / N records of the universe.
    selected = workload.counts(np.ones(math.prod(sizes), dtype=np.int64))
    picked = selected * cells[set_of_query] // math.prod(sizes)
    spread = picked * (1 - picked / cells[set_of_query])

    starts = [marginal.first_query for marginal in workload.marginals]
    statements = np.searchsorted(workload.statement_offsets, starts)
    flat: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for statement, marginal in zip(statements.tolist(), workload.marginals, strict=True):
        axes = sets[statement]
        own = slice(marginal.first_query, marginal.first_query + int(statement_sizes[statement]))
        if axes is not None and axes in estimates:
            if marginal.axes not in flat:
                order = [axes.index(axis) for axis in marginal.axes if axis in axes]
                flat[marginal.axes] = estimates[axes].counts.transpose(order).reshape(-1)
            counts[own] = flat[marginal.axes]
    for number, (axes, estimated) in enumerate(estimates.items()):
        for group in workload.groups:
            rows = np.flatnonzero(set_of_query[group.queries] == number)
            if rows.size:
                _add_predicates(workload, group, rows, axes, estimated, counts)
    known = set_of_query >= 0
    deviation = np.zeros(queries)
    deviation[known] = np.sqrt(variances[set_of_query[known]] * spread[known])
    far = math.sqrt(2 * math.log(2 / chance)) * deviation[known] * (1 + 1e-9)
    reach[known] = far + slack[set_of_query[known]]
    return DirectAnswers(counts, reach, deviation)


def _numbered(sets: list[Axes | None], estimates: Mapping[Axes, TableEstimate]) -> NDArray[np.int64]:
    numbers = {axes: number for number, axes in enumerate(estimates)}
    return np.array([-1 if axes is None else numbers.get(axes, -1) for axes in sets], dtype=np.int64)


def _add_predicates(
    workload: CompiledWorkload,
    group: Terms,
    rows: NDArray[np.int64],
    axes: Axes,
    estimate: TableEstimate,
    counts: NDArray[np.float64],
) -> None:
    """Adds what the table over `axes` says about some boxes of a group to the predicates that they are part of."""
    unit = 2.0 ** (EXACT_BITS - math.frexp(float(np.abs(estimate.counts).sum()) + 1)[1])
    others = tuple(place for place, axis in enumerate(axes) if axis not in group.axes)
    table = np.asarray(np.rint(estimate.counts * unit).astype(np.int64).sum(axis=others, dtype=np.int64))
    terms = Terms(group.axes, group.queries[rows], group.coefficients[rows], group.vectors[rows])
    np.add.at(counts, terms.queries, terms.counts(table, workload.vectors) / unit)


def _slack(estimate: TableEstimate) -> float:
    return float(np.abs(estimate.counts).sum()) * ROUNDING
