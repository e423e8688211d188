"""Sums against a naive reference that weighs every record, over the universe and over lists of records."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from harness.examples import examples
from harness.naive_workloads import (
    RECORDS,
    SCHEMA,
    Linear,
    naive_matrix,
    naive_sums,
    seeds,
    statements_of_all_kinds,
    sums,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from equipoise.queries.joined_workloads import concatenate, some_statements
from equipoise.queries.listed_workload import ListedWorkload
from equipoise.queries.record_list import RecordList
from equipoise.queries.statements import Sum
from equipoise.queries.workload_compiler import compile_workload

mixed = st.lists(statements_of_all_kinds | sums | sums, min_size=1, max_size=6)
WHOLE = 2**16


def counted(matrix: NDArray[np.int64], weighted: NDArray[np.bool_], histogram: NDArray[np.int64]) -> list[int]:
    """The counts in Python's integers, which cannot overflow."""
    sums_of = [sum(map(int.__mul__, row, histogram.tolist())) for row in matrix.tolist()]
    return [each // WHOLE if own else each for each, own in zip(sums_of, weighted.tolist(), strict=True)]


@pytest.mark.nightly
@given(mixed, seeds)
def test_counts_are_the_matrix_s_rounded_down_to_whole_records(statements: list[Linear], seed: int) -> None:
    compiled, matrix = compile_workload(statements, SCHEMA), naive_matrix(statements)
    weighted = np.repeat([isinstance(each, Sum) for each in statements], np.diff(compiled.statement_offsets))
    generator = np.random.default_rng(seed)
    # Absent weights leave a statement without a query that is above 0, and so without a weighted table.
    some = matrix.any(axis=1)
    np.testing.assert_array_equal(compiled.weighted[some], weighted[some])
    for most in (5, 2**40, 2**53 // len(RECORDS)):
        histogram = generator.integers(-most, most, len(RECORDS))
        assert compiled.counts(histogram).tolist() == counted(matrix, weighted, histogram)
    for records in (0, 1, 63, 65, 3000):
        cells = generator.integers(0, len(RECORDS), records)
        assert compiled.record_counts(cells).tolist() == counted(matrix[:, cells], weighted, np.ones_like(cells))
    np.testing.assert_array_equal(compiled.covered(), (matrix > 0).sum(axis=1))


@given(mixed, seeds)
def test_expectations_and_combinations_are_the_matrix_s(statements: list[Linear], seed: int) -> None:
    compiled = compile_workload(statements, SCHEMA)
    matrix = naive_matrix(statements) / np.where(compiled.weighted, WHOLE, 1)[:, None]
    generator = np.random.default_rng(seed)
    distribution, coefficients = generator.random(len(RECORDS)), generator.normal(size=len(matrix))
    np.testing.assert_allclose(compiled.expectations(distribution), matrix @ distribution, atol=1e-12)
    np.testing.assert_allclose(compiled.combination(coefficients), coefficients @ matrix, atol=1e-12)


@given(mixed, seeds)
def test_combinations_in_units_are_the_matrix_s_exactly(statements: list[Linear], seed: int) -> None:
    compiled, generator = compile_workload(statements, SCHEMA), np.random.default_rng(seed)
    units = naive_matrix(statements) * np.where(compiled.weighted, 1, WHOLE)[:, None]
    most = max(1, 2**29 // max(1, compiled.query_count))
    coefficients = generator.integers(-most, most, compiled.query_count, endpoint=True)
    exact = [sum(map(int.__mul__, column, coefficients.tolist())) for column in units.T.tolist()]
    assert compiled.unit_transpose(coefficients).tolist() == exact
    places = generator.integers(0, len(RECORDS), 40)
    codes = np.array(compiled.categories(places)).astype(np.uint8)
    listed = ListedWorkload(compiled, RecordList(SCHEMA.sizes, codes))
    assert listed.unit_transpose(coefficients).tolist() == [exact[place] for place in places.tolist()]
    for workload in (compiled, listed):
        with pytest.raises(ValueError, match="coefficients"):
            workload.unit_transpose(coefficients[:-1])


@settings(max_examples=examples(50))
@given(mixed, seeds)
def test_over_a_list_of_records_sums_are_the_same(statements: list[Linear], seed: int) -> None:
    compiled, generator = compile_workload(statements, SCHEMA), np.random.default_rng(seed)
    places = generator.integers(0, len(RECORDS), 40)
    codes = np.array(compiled.categories(places)).astype(np.uint8)
    listed = ListedWorkload(compiled, RecordList(SCHEMA.sizes, codes))
    own = generator.integers(0, 2**40, len(places))
    histogram = np.zeros(len(RECORDS), dtype=np.int64)
    np.add.at(histogram, places, own)
    np.testing.assert_array_equal(listed.counts(own), compiled.counts(histogram))
    some = generator.integers(0, len(places), 30)
    np.testing.assert_array_equal(listed.record_counts(some), compiled.record_counts(places[some]))
    np.testing.assert_allclose(listed.expectations(own / 1.0), compiled.expectations(histogram / 1.0), rtol=1e-12)
    coefficients = generator.normal(size=compiled.query_count)
    np.testing.assert_allclose(
        listed.combination(coefficients), compiled.combination(coefficients)[places], atol=1e-12
    )


@given(mixed, seeds)
def test_no_replaced_record_moves_a_statement_by_more_than_its_sensitivity(
    statements: list[Linear], seed: int
) -> None:
    """Rounding included: the tables are small, so that sums cross whole records often."""
    compiled, generator = compile_workload(statements, SCHEMA), np.random.default_rng(seed)
    l1, l2, linf = compiled.sensitivities()
    for _ in range(30):
        rest = generator.integers(0, len(RECORDS), generator.integers(0, 4))
        one, other = (np.append(rest, each) for each in generator.integers(0, len(RECORDS), 2))
        moved = np.abs(compiled.record_counts(one) - compiled.record_counts(other))
        assert moved.sum() <= l1
        assert (moved * moved).sum() <= l2**2
        assert moved.max(initial=0) <= linf
        each = [moved[a:b].sum() for a, b in itertools.pairwise(compiled.statement_offsets.tolist())]
        assert (np.array(each) <= compiled.statement_sensitivities).all()


@given(sums)
def test_replacing_and_adding_any_record_of_any_pair_moves_a_sum_by_what_is_declared(statement: Sum) -> None:
    """All pairs of the universe beside one record of every weight: every remainder that rounding can meet."""
    matrix = np.array(naive_sums(statement))
    declared = compile_workload([statement], SCHEMA).statement_sensitivity(0)
    assert declared == (2 if statement.by else 1)
    columns = np.unique(matrix, axis=1).T
    for rest in columns:
        alone, beside = rest // WHOLE, (rest + columns) // WHOLE
        assert np.abs(beside[:, None, :] - beside[None, :, :]).sum(axis=2).max() <= declared
        assert np.abs(beside - alone).sum(axis=1).max() <= 1  # a record that is added or taken away


@settings(max_examples=examples(50))
@given(st.lists(mixed, min_size=2, max_size=3), st.data())
def test_joined_and_divided_workloads_keep_their_weights(parts: list[list[Linear]], data: st.DataObject) -> None:
    joined = concatenate([compile_workload(part, SCHEMA) for part in parts])
    every = [each for part in parts for each in part]
    histogram = np.arange(len(RECORDS), dtype=np.int64)
    np.testing.assert_array_equal(joined.counts(histogram), compile_workload(every, SCHEMA).counts(histogram))
    chosen = [number for number in range(len(every)) if data.draw(st.booleans())]
    alone = compile_workload([every[number] for number in chosen], SCHEMA)
    part = some_statements(joined, chosen)
    np.testing.assert_array_equal(part.counts(histogram), alone.counts(histogram))
    assert part.statement_tables() == alone.statement_tables()
    assert part.weighted_statements == alone.weighted_statements


def test_a_sum_has_no_exact_transpose() -> None:
    compiled = compile_workload([Sum("delay")], SCHEMA)
    first, one = np.zeros(1, np.int64), np.ones(1, np.int64)
    with pytest.raises(ValueError, match="no exact transpose"):
        compiled.transpose(one)
    with pytest.raises(ValueError, match="no exact transpose"):
        compiled.transpose_sparse(first, one)
