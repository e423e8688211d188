"""Compiled workloads against a naive reference that reads the predicate at every record."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from equipoise.queries.predicates import AllOf, Among, AnyOf, Interval, Marginal, Not, Predicate
from equipoise.queries.schema import Attribute, Schema, bin_labels
from equipoise.queries.workload_compiler import compile_workload, concatenate

Record = tuple[str, ...]
Linear = Predicate | Marginal

EDGES = (-1.5, 0.0, 2.0, 7.0)
SCHEMA = Schema(
    (
        Attribute("colour", ("red", "green", "blue")),
        Attribute("delay", (*bin_labels(EDGES), "missing"), EDGES, missing="missing"),
        Attribute("only", ("one",)),
        Attribute("day", tuple("abcdefghij")),
    )
)
RECORDS: list[Record] = list(itertools.product(*(each.categories for each in SCHEMA.attributes)))


def holds(predicate: Predicate, record: Record) -> bool:
    """What a predicate means, said once more without boxes, masks or arrays."""
    match predicate:
        case Among(name, categories):
            return record[SCHEMA.names.index(name)] in categories
        case Interval(name, low, high):
            lows = dict(zip(bin_labels(EDGES), itertools.pairwise(EDGES), strict=True))
            ends = lows.get(record[SCHEMA.names.index(name)])
            return ends is not None and low <= ends[0] and ends[1] <= high
        case AllOf(conditions):
            return all(holds(each, record) for each in conditions)
        case AnyOf(conditions):
            return any(holds(each, record) for each in conditions)
        case Not(condition):
            return not holds(condition, record)


def naive_matrix(statements: list[Linear]) -> NDArray[np.int64]:
    rows: list[list[int]] = []
    for statement in statements:
        if isinstance(statement, Marginal):
            axes = [SCHEMA.names.index(name) for name in statement.attributes]
            for cell in itertools.product(*(SCHEMA.attributes[axis].categories for axis in axes)):
                rows.append([int(tuple(record[axis] for axis in axes) == cell) for record in RECORDS])
        else:
            rows.append([int(holds(statement, record)) for record in RECORDS])
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(RECORDS))


amongs = st.sampled_from(SCHEMA.attributes).flatmap(
    lambda each: st.lists(st.sampled_from(each.categories), min_size=1).map(lambda c: Among(each.name, tuple(c)))
)
intervals = st.tuples(
    st.sampled_from((-math.inf, *EDGES, math.inf)), st.sampled_from((-math.inf, *EDGES, math.inf))
).map(lambda ends: Interval("delay", min(ends), max(ends)))
predicates: st.SearchStrategy[Predicate] = st.recursive(
    amongs | intervals,
    lambda inner: st.lists(inner, min_size=1, max_size=4).flatmap(
        lambda parts: st.sampled_from([AllOf(tuple(parts)), AnyOf(tuple(parts)), Not(parts[0])])
    ),
    max_leaves=8,
)
names = st.lists(st.sampled_from(SCHEMA.names), min_size=1, unique=True)
marginals = names.map(lambda some: Marginal(tuple(some)))
constants = predicates.flatmap(lambda each: st.sampled_from([AnyOf((each, Not(each))), AllOf((Not(each), each))]))
statements_of_all_kinds = predicates | predicates | constants | marginals
# Some have one statement, some the same one several times.
workloads = st.lists(statements_of_all_kinds, max_size=6) | st.lists(
    statements_of_all_kinds, min_size=1, max_size=3
).flatmap(lambda few: st.lists(st.sampled_from(few), min_size=1, max_size=6))
seeds = st.integers(0, 2**32 - 1)


@given(workloads, seeds)
def test_every_operation_equals_the_matrix_s(statements: list[Linear], seed: int) -> None:
    compiled = compile_workload(statements, SCHEMA)
    matrix = naive_matrix(statements)
    generator = np.random.default_rng(seed)
    assert (compiled.query_count, compiled.statement_count) == (len(matrix), len(statements))

    covered = matrix.sum(axis=1)
    np.testing.assert_array_equal(compiled.covered(), covered)
    np.testing.assert_array_equal(compiled.supports(), np.minimum(covered, (1 - matrix).sum(axis=1)))
    assert compiled.support == compiled.supports().max(initial=0)

    histogram = generator.integers(-(2**40), 2**40, len(RECORDS))
    np.testing.assert_array_equal(compiled.counts(histogram), matrix @ histogram)

    for records in (0, 1, 63, 65, 3000):
        cells = generator.integers(0, len(RECORDS), records)
        np.testing.assert_array_equal(compiled.record_counts(cells), matrix[:, cells].sum(axis=1))

    scale = 2**45 // max(1, len(matrix))
    coefficients = generator.integers(-scale, scale, len(matrix), endpoint=True)
    np.testing.assert_array_equal(compiled.transpose(coefficients), coefficients @ matrix)

    if len(matrix):
        queries = generator.integers(0, len(matrix), 5)
        some = generator.integers(-1000, 1000, 5)
        np.testing.assert_array_equal(compiled.transpose_sparse(queries, some), some @ matrix[queries])


@settings(max_examples=50)
@given(workloads)
def test_single_records_and_single_queries_are_the_matrix_s_columns_and_rows(statements: list[Linear]) -> None:
    compiled = compile_workload(statements, SCHEMA)
    matrix = naive_matrix(statements)
    for record, column in enumerate(matrix.T):
        np.testing.assert_array_equal(compiled.record_counts(np.array([record])), column)
        one = np.zeros(len(RECORDS), dtype=np.int64)
        one[record] = 1
        np.testing.assert_array_equal(compiled.counts(one), column)
    for query, row in enumerate(matrix):
        np.testing.assert_array_equal(compiled.transpose_sparse(np.array([query]), np.array([1])), row)
        np.testing.assert_array_equal(compiled.transpose(np.eye(len(matrix), dtype=np.int64)[query]), row)


@given(workloads)
def test_sensitivities_bound_every_replacement(statements: list[Linear]) -> None:
    compiled = compile_workload(statements, SCHEMA)
    matrix = naive_matrix(statements)
    l1, l2, linf = compiled.sensitivities()
    generator = np.random.default_rng(0)
    for x, y in generator.integers(0, len(RECORDS), (200, 2)):
        moved = np.abs(matrix[:, x] - matrix[:, y])
        assert moved.sum() <= l1
        assert np.sqrt((moved * moved).sum()) <= l2
        assert moved.max(initial=0) <= linf
        for i in range(len(statements)):
            statement = moved[compiled.statement_offsets[i] : compiled.statement_offsets[i + 1]]
            assert statement.sum() <= compiled.statement_sensitivity(i)


@settings(max_examples=50)
@given(st.lists(workloads, min_size=1, max_size=4), seeds)
def test_concatenation_is_compiling_the_statements_in_order(parts: list[list[Linear]], seed: int) -> None:
    joined = concatenate([compile_workload(part, SCHEMA) for part in parts])
    together = compile_workload([each for part in parts for each in part], SCHEMA)
    np.testing.assert_array_equal(joined.statement_offsets, together.statement_offsets)
    assert joined.sensitivities() == together.sensitivities()
    generator = np.random.default_rng(seed)
    histogram = generator.integers(0, 1000, len(RECORDS))
    np.testing.assert_array_equal(joined.counts(histogram), together.counts(histogram))
    cells = generator.integers(0, len(RECORDS), 10)
    np.testing.assert_array_equal(joined.record_counts(cells), together.record_counts(cells))
    coefficients = generator.integers(-1000, 1000, together.query_count)
    np.testing.assert_array_equal(joined.transpose(coefficients), together.transpose(coefficients))
    if together.query_count:
        queries = generator.integers(0, together.query_count, 7)
        np.testing.assert_array_equal(
            joined.transpose_sparse(queries, queries), together.transpose_sparse(queries, queries)
        )
