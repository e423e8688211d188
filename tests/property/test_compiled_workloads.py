"""Compiled workloads against a naive reference that reads the predicate at every record."""

from __future__ import annotations

from typing import get_args

import numpy as np
from harness.examples import examples
from harness.naive_workloads import RECORDS, SCHEMA, Linear, naive_matrix, names, predicates, seeds, workloads
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.queries.joined_workloads import concatenate, some_statements
from equipoise.queries.predicates import Predicate
from equipoise.queries.statements import KINDS, LinearKind, Marginal
from equipoise.queries.workload_compiler import compile_workload


def test_every_linear_kind_has_a_naive_reference() -> None:
    linear = [form for kind in KINDS if isinstance(kind, LinearKind) for form in kind.forms]
    assert [form for form in linear if form not in get_args(Linear)] == []


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


@settings(max_examples=examples(50))
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


@settings(max_examples=examples(50))
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


@settings(max_examples=examples(50))
@given(workloads, st.data())
def test_some_statements_of_a_workload_are_those_statements_compiled(
    statements: list[Linear], data: st.DataObject
) -> None:
    chosen = [number for number in range(len(statements)) if data.draw(st.booleans())]
    part = some_statements(compile_workload(statements, SCHEMA), chosen)
    alone = compile_workload([statements[number] for number in chosen], SCHEMA)
    histogram = np.arange(len(RECORDS), dtype=np.int64)
    np.testing.assert_array_equal(part.counts(histogram), alone.counts(histogram))
    np.testing.assert_array_equal(part.statement_offsets, alone.statement_offsets)
    np.testing.assert_array_equal(part.statement_sensitivities, alone.statement_sensitivities)
    assert part.statement_tables() == alone.statement_tables()


@given(names, predicates)
def test_a_marginal_of_some_records_moves_by_two_between_two_of_its_cells(
    attributes: list[str], where: Predicate
) -> None:
    statement = Marginal(tuple(attributes), where)
    matrix = naive_matrix([statement])
    moved = max(int(np.abs(matrix - matrix[:, [record]]).sum(axis=0).max()) for record in range(len(RECORDS)))
    cells, outside = int(matrix.any(axis=1).sum()), not matrix.any(axis=0).all()
    assert moved == (2 if cells > 1 else int(cells == 1 and outside))
    assert moved <= compile_workload([statement], SCHEMA).statement_sensitivity(0) == 2
