"""The parts of `pooled` against naive references: explicit vectors over the universe, plain loops, bisection."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from harness.examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from equipoise import accounting
from equipoise.queries.joined_workloads import some_statements
from equipoise.queries.marginal_tables import Axes
from equipoise.queries.predicates import Among, attribute
from equipoise.queries.schema import MAX_ATTRIBUTES, Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.pooled.allocation import cube_root, shares_of
from equipoise_server.mechanisms.pooled.demand import votes_of
from equipoise_server.mechanisms.pooled.direct import direct_answers
from equipoise_server.mechanisms.pooled.family import Family
from equipoise_server.mechanisms.pooled.measured import (
    MeasuredTable,
    estimate,
    estimated_variances,
    measure,
    reach,
)
from equipoise_server.mechanisms.pooled.synopsis import synthetic_records

SIZES = {"a": 3, "b": 2, "one": 1, "c": 4}
SCHEMA = Schema(tuple(Attribute(name, tuple(map(str, range(size)))) for name, size in SIZES.items()))
UNIVERSE = 24
A, B, C = Among("a", ("0", "2")), attribute("b") == "1", Among("c", ("1", "2", "3"))
STATEMENTS: list[Statement] = [
    Marginal(("c", "one", "a")),
    A & B,
    A | C,
    Marginal(("one",)),
    ~(A & B & C),
    A | ~A,
    A & ~A,
    Marginal(("a", "c")),
    attribute("one") == "0",
    C,
    Marginal(("b",)),
    Marginal(("c", "one"), where=A),
    Marginal(("a",), where=A | (C & (attribute("a") == "1"))),
    Marginal(("b",), where=A & ~A),
]
SETS = [(0, 3), (0, 1), (0, 3), (), (0, 1, 3), (), (), (0, 3), (), (3,), (1,), (0, 3), (0, 3), ()]
WORKLOAD = compile_workload(STATEMENTS, SCHEMA)


def selected(workload: CompiledWorkload, query: int) -> NDArray[np.int64]:
    """Which cells of the universe a query counts."""
    return workload.transpose_sparse(np.array([query], dtype=np.int64), np.ones(1, dtype=np.int64))


def test_a_statement_is_about_the_attributes_that_it_constrains() -> None:
    assert WORKLOAD.statement_tables() == SETS
    assert compile_workload([], SCHEMA).statement_tables() == []


def test_as_many_attributes_as_a_schema_can_have_are_told_apart() -> None:
    schema = Schema(tuple(Attribute(f"x{number}", ("0", "1")) for number in range(MAX_ATTRIBUTES)))
    asked: list[Statement] = [
        attribute("x0") == "1",
        (attribute("x31") == "0") & (attribute("x32") == "1"),
        Marginal(("x255", "x61", "x62")),
    ]
    assert compile_workload(asked, schema).statement_tables() == [(0,), (31, 32), (61, 62, 255)]


def test_votes_are_one_a_statement_or_one_a_set() -> None:
    sets = ((0,), (0, 3), (1,))
    assert votes_of(WORKLOAD, "query", sets).tolist() == [0, 5, 1]
    assert votes_of(WORKLOAD, "analyst", sets).tolist() == [0, 1, 1]


def test_no_replacement_moves_more_votes_than_is_charged() -> None:
    """Every pair of workloads of up to two statements, over three sets."""
    sets = ((0,), (1,), (3,))
    asked: list[Statement] = [Marginal(("a",)), B, C, Marginal(("one",)), A & B]
    for unit, most in (("query", 1), ("analyst", 2)):
        votes = [
            votes_of(compile_workload(list(own), SCHEMA), unit, sets)
            for count in range(most + 1)
            for own in itertools.product(asked, repeat=count)
        ]
        moves = [one - other for one in votes for other in votes]
        allowed = accounting.votes_l1_sensitivity(most, len(sets))
        assert max(int(np.abs(move).sum()) for move in moves) == allowed
        assert max(int((move**2).sum()) for move in moves) == allowed


def test_a_family_holds_small_tables_and_its_largest_tell_all_others() -> None:
    family = Family((3, 2, 1, 4), ways=2, cells=8)
    assert family.sets == ((0,), (1,), (3,), (0, 1), (1, 3))
    assert family.largest == ((0, 1), (1, 3))
    assert family.holds(())
    assert not family.holds((0, 3))
    assert not family.holds((0, 1, 3))
    assert Family((1, 1), 1, 10).sets == ()


@given(st.integers(0, 10**60))
def test_cube_roots_are_exact(number: int) -> None:
    root = cube_root(number)
    assert root**3 <= number < (root + 1) ** 3


@settings(max_examples=examples(60))
@given(
    st.lists(st.tuples(st.integers(-50, 5000), st.booleans()), min_size=1, max_size=12),
    st.integers(0, 20),
    st.fractions(Fraction(1, 20), Fraction(1)),
)
def test_parts_are_demand_to_the_two_thirds_above_the_floors(
    tables: Sequence[tuple[int, bool]], least: int, part: Fraction
) -> None:
    """Against a bisection for the factor that makes `max(floor, factor demand^(2/3))` add up to 1."""
    demand, always = [count for count, _ in tables], [kept for _, kept in tables]
    always[0], tables = True, [(tables[0][0], True), *tables[1:]]
    floor = part / sum(always)
    shares = shares_of(demand, least, always, floor)
    powers = [
        max(0, count) ** (2 / 3) if kept or count > least else 0.0
        for count, kept in zip(demand, always, strict=True)
    ]
    assert sum(shares) == 1
    assert all(share >= floor for share, kept in zip(shares, always, strict=True) if kept)
    if not any(powers):
        assert shares == [Fraction(1, sum(always)) if kept else 0 for kept in always]
        return
    low, high = 0.0, 1 / min(power for power in powers if power)
    for _ in range(200):
        factor = (low + high) / 2
        parts = [max(float(floor) if kept else 0.0, factor * p) for p, kept in zip(powers, always, strict=True)]
        low, high = (factor, high) if sum(parts) < 1 else (low, factor)
    assert [float(share) for share in shares] == pytest.approx(parts, abs=1e-8)


def noisy_tables(seed: int) -> list[MeasuredTable]:
    """Tables that overlap, of different noise."""
    random = np.random.default_rng(seed)
    shape = SCHEMA.sizes
    return [
        MeasuredTable(axes, random.integers(-20, 200, [shape[axis] for axis in axes]), Fraction(variance))
        for axes, variance in (((0, 1, 3), 7), ((0, 3), 11), ((1, 3), 2), ((3,), 40))
    ]


@pytest.mark.parametrize("axes", [(), (0,), (3,), (0, 3), (1, 3), (0, 1, 3)])
def test_an_estimate_is_a_weighted_mean_whose_noise_is_as_stated(axes: Axes) -> None:
    """The linear map from all measured cells to the estimate, column by column, and the variance it gives."""
    tables, shape = noisy_tables(1), SCHEMA.sizes
    told = estimate(shape, axes, tables, 500)
    assert told.counts.sum() == pytest.approx(500)
    columns, variances = [], []
    for place, table in enumerate(tables):
        for cell in range(table.counts.size):
            moved = table.counts.copy().reshape(-1)
            moved[cell] += 1
            others = list(tables)
            others[place] = MeasuredTable(table.axes, moved.reshape(table.counts.shape), table.variance)
            columns.append((estimate(shape, axes, others, 500).counts - told.counts).reshape(-1))
            variances.append(float(table.variance))
    effect = np.array(columns)
    random = np.random.default_rng(2)
    for _ in range(20):
        query = random.integers(0, 2, told.counts.size)
        exact = float(np.array(variances) @ (effect @ query) ** 2)
        picked = int(query.sum())
        assert exact == pytest.approx(picked * (1 - picked / query.size) * told.variance, abs=1e-9)
    # Without bias: tables counted without noise give the true table.
    histogram = random.integers(0, 30, UNIVERSE)
    exact_tables = [MeasuredTable(table.axes, summed(histogram, table.axes), table.variance) for table in tables]
    truth = estimate(shape, axes, exact_tables, int(histogram.sum()))
    assert truth.counts == pytest.approx(summed(histogram, axes))


def summed(histogram: NDArray[np.int64], axes: Axes) -> NDArray[np.int64]:
    """The table over `axes`."""
    others = tuple(axis for axis in range(len(SCHEMA.sizes)) if axis not in axes)
    return np.asarray(histogram.reshape(SCHEMA.sizes).sum(axis=others))


def test_direct_answers_are_sums_over_the_estimates_cells() -> None:
    tables, chance = noisy_tables(3), 1e-4
    estimates = {axes: estimate(SCHEMA.sizes, axes, tables, 500) for axes in set(SETS) if axes != (1,)}
    told = direct_answers(WORKLOAD, estimates, chance)
    statements = np.repeat(np.arange(len(STATEMENTS)), np.diff(WORKLOAD.statement_offsets))
    for query, statement in enumerate(statements.tolist()):
        axes = SETS[statement]
        if axes == (1,):
            assert told.reach[query] == math.inf
            continue
        cells = summed(selected(WORKLOAD, query), axes)
        own = (cells > 0).astype(np.float64)
        assert set(np.unique(cells)) <= {0, UNIVERSE // cells.size}
        assert told.counts[query] == pytest.approx(float((own * estimates[axes].counts).sum()), abs=1e-6)
        spread = own.sum() * (1 - own.sum() / own.size) * estimates[axes].variance
        # Tables of some records alone are no tables of the family: all their cells have the chance of one.
        restricted = isinstance(asked := STATEMENTS[statement], Marginal) and asked.where is not None
        sharing = int((statements == statement).sum()) if restricted else 1
        assert told.reach[query] == pytest.approx(math.sqrt(2 * spread * math.log(2 * sharing / chance)), abs=1e-6)


@pytest.mark.parametrize(("variance", "chance"), [(1.0, 0.05), (30.0, 1e-3)])
def test_the_reach_holds_for_sums_of_drawn_noise(variance: float, chance: float) -> None:
    """Exactly, for the sum of two discrete Gaussian numbers with different weights."""
    width = np.arange(-200, 201)
    law = np.exp(-(width**2) / 2 / variance)
    law /= law.sum()
    weights = (1.0, 0.25)
    total = sum(weight**2 for weight in weights) * variance
    sums = np.add.outer(weights[0] * width, weights[1] * width)
    assert float(np.outer(law, law)[np.abs(sums) > reach(total, chance)].sum()) <= chance


def test_tables_are_counted_with_noise_of_the_planned_cost() -> None:
    histogram = np.arange(UNIVERSE, dtype=np.int64) * 1000
    rhos = {(0, 1): Fraction(1, 50), (3,): Fraction(1, 7)}
    tables = measure(DenseCounts(histogram, SCHEMA.sizes), rhos, bytes(32))
    assert {table.axes for table in tables} == rhos.keys()
    for table in tables:
        assert (
            accounting.tables_rho([table.variance]) <= rhos[table.axes] <= 1 / table.variance + Fraction(1, 10**5)
        )
        distance = np.abs(table.counts - summed(histogram, table.axes))
        assert 0 < distance.max() < 8 * math.sqrt(table.variance)


def test_a_synthetic_table_holds_every_run_of_cells_to_a_record() -> None:
    random = np.random.default_rng(4)
    weights = random.random(300) ** 8
    cells = synthetic_records(weights, 1000)
    assert len(cells) == 1000
    ends, held = np.cumsum(weights / weights.sum()) * 1000, np.cumsum(np.bincount(cells, minlength=300))
    assert np.abs(ends - held).max() <= 0.5 + 1e-9
    assert synthetic_records(np.array([0.0, 3.0, 0.0]), 4).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("chosen", [[], [0], [1, 4, 7], [3, 5, 6, 10], [11, 13], list(range(14))])
def test_some_statements_of_a_workload_count_what_they_counted_before(chosen: list[int]) -> None:
    histogram = np.arange(UNIVERSE, dtype=np.int64) ** 2
    counts, offsets = WORKLOAD.counts(histogram), WORKLOAD.statement_offsets
    part = some_statements(WORKLOAD, chosen)
    expected = [counts[offsets[statement] : offsets[statement + 1]] for statement in chosen]
    assert part.counts(histogram).tolist() == [int(count) for each in expected for count in each]
    assert part.statement_tables() == [SETS[statement] for statement in chosen]
    assert [part.statement_sensitivity(i) for i in range(len(chosen))] == [
        WORKLOAD.statement_sensitivity(statement) for statement in chosen
    ]


def test_the_largest_sets_and_the_variances_of_all_are_those_of_plain_loops() -> None:
    family = Family((3, 2, 1, 4, 5), 3, 30)
    assert family.largest == tuple(
        axes for axes in family.sets if not any(set(axes) < set(other) for other in family.sets)
    )
    cells = {axes: math.prod(family.sizes[axis] for axis in axes) for axes in family.sets}
    measured = [(axes, 1.5 + place) for place, axes in enumerate(family.largest[1:])]
    found = estimated_variances(family.sizes, family.sets, measured)
    for axes, variance in zip(family.sets, found, strict=True):
        holding = [cells[axes] / cells[other] / each for other, each in measured if set(axes) <= set(other)]
        assert variance == (1 / sum(holding) if holding else math.inf)
    assert math.inf in found
