"""Intervals from measured tables alone: chances of statements with many answers, and sums by weights."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise.queries.predicates import Interval, attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.mechanisms.pooled.direct import deviations_of_reach, direct_answers
from equipoise_server.mechanisms.pooled.measured import MeasuredTable, TableEstimate, estimate

EDGES = (0.0, 1.0, 2.5, 3.0, 4.0, 9.0)
SCHEMA = Schema(
    (Attribute("a", ("0", "1", "2")), Attribute("b", bin_labels(EDGES), EDGES), Attribute("c", ("0", "1")))
)
SIZES = SCHEMA.sizes
a, c = attribute("a"), attribute("c")
ASKED: list[Statement] = [
    Marginal(("c", "a")),
    Marginal(("a",), where=c == "1"),
    Sum("b"),
    (a == "1") | (c == "0"),
    Sum("b", ("a",), low=1, high=4),
    Sum("b", ("c",), where=(a == "1") & Interval("b", 0, 2.5)),
    Sum("b", where=(a == "0") | (c == "1")),
]
WORKLOAD = compile_workload(ASKED, SCHEMA)


def table(records: int) -> NDArray[np.int64]:
    weights = np.random.default_rng(4).dirichlet(np.ones(math.prod(SIZES)))
    return np.random.default_rng(5).multinomial(records, weights).astype(np.int64)


def estimates_of(records: int, variance: Fraction) -> dict[Axes, TableEstimate]:
    """What one measurement of the table over all attributes tells, of noise that happens to be 0."""
    measured = [MeasuredTable((0, 1, 2), table(records).reshape(SIZES), variance)]
    return {axes: estimate(SIZES, axes, measured, records) for axes in set(WORKLOAD.statement_tables())}


def test_all_answers_of_a_statement_share_its_chance_unless_they_are_cells_of_the_family() -> None:
    chances = 2 * np.exp(-(deviations_of_reach(WORKLOAD, 1e-3) ** 2) / 2)
    whole, *others = np.split(chances, WORKLOAD.statement_offsets[1:-1])
    assert whole == pytest.approx(np.full(6, 1e-3))
    assert [len(each) for each in others] == [3, 1, 1, 3, 2, 1]
    assert [each.sum() for each in others] == pytest.approx([1e-3] * len(others))


@pytest.mark.parametrize("records", [1_999, 2**39])
def test_without_noise_truths_of_sums_lie_within_the_rounding(records: int) -> None:
    """They are rounded down to whole records, and of many records each cell is counted in coarser units."""
    told = direct_answers(WORKLOAD, estimates_of(records, Fraction(1, 1 << 40)), 1e-6)
    away = np.abs(told.counts - WORKLOAD.counts(table(records)))
    assert (away <= told.reach).all()
    assert away.max() > 0.5
    assert told.reach.max() < max(2, records * 2.0**-28)


def test_no_query_is_told_less_noise_than_its_weights_have() -> None:
    estimates, universe = estimates_of(10_000, Fraction(9)), math.prod(SIZES)
    told, tables = direct_answers(WORKLOAD, estimates, 1e-6), WORKLOAD.statement_tables()
    for statement, first in enumerate(WORKLOAD.statement_offsets[:-1].tolist()):
        estimated = estimates[tables[statement]]
        cells = estimated.counts.size
        for query in range(first, int(WORKLOAD.statement_offsets[statement + 1])):
            weights = WORKLOAD.combination(np.eye(WORKLOAD.query_count)[query])
            total, squares = weights.sum() * cells / universe, (weights**2).sum() * cells / universe
            spread = told.deviation[query] ** 2 / estimated.variance
            assert (squares - total**2 / cells) * (1 - 1e-9) <= spread <= cells / 4 * (1 + 1e-9)
