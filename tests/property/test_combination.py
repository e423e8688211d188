"""Growing sums of queries at single records, against the naive matrix of queries by records."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from harness.naive_workloads import RECORDS, SCHEMA, Linear, naive_matrix, seeds, workloads
from hypothesis import given
from hypothesis import strategies as st

from equipoise.queries import combination as combination_module
from equipoise.queries.combination import Combination
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload


@given(workloads, seeds, st.sampled_from((1, 7, 1 << 21)))
def test_a_growing_combination_is_the_matrix_s_at_every_record(
    statements: list[Linear], seed: int, block: int
) -> None:
    compiled = compile_workload(statements, SCHEMA)
    matrix = naive_matrix(statements)
    generator = np.random.default_rng(seed)
    combination = Combination(compiled)
    with mock.patch.object(combination_module, "BLOCK", block):
        for _ in range(2):
            expected = np.zeros(len(RECORDS), dtype=np.int64)
            for size in (0, 1, 6) if len(matrix) else (0,):
                queries = generator.integers(0, max(1, len(matrix)), size)
                some = generator.integers(-1000, 1000, size)
                combination.add(queries, some)
                expected += some @ matrix[queries]
                cells = generator.integers(0, len(RECORDS), 5)
                np.testing.assert_array_equal(combination.at(cells), expected[cells])
            np.testing.assert_array_equal(combination.at(np.arange(len(RECORDS))), expected)
            combination.clear()


@given(workloads, seeds)
def test_a_query_that_is_added_again_counts_again(statements: list[Linear], seed: int) -> None:
    """Three times in one call and once more in another, of predicates, tables and restricted tables alike."""
    compiled = compile_workload(statements, SCHEMA)
    matrix = naive_matrix(statements)
    combination = Combination(compiled)
    for query in np.random.default_rng(seed).permutation(len(matrix))[:4]:
        combination.clear()
        combination.add(np.repeat(query, 3), np.array([2, 30, 500]))
        combination.add(np.array([query]), np.array([-7000]))
        np.testing.assert_array_equal(combination.at(np.arange(len(RECORDS))), -6468 * matrix[query])


def test_a_combination_refuses_what_is_not_in_the_workload() -> None:
    combination = Combination(compile_workload([Marginal(("colour",))], SCHEMA))
    for queries in ([3], [-1], [[0]]):
        with pytest.raises(ValueError, match=r"quer(y|ies)"):
            combination.add(np.array(queries), np.ones(np.shape(queries), dtype=np.int64))
    with pytest.raises(ValueError, match="coefficient"):
        combination.add(np.array([0]), np.array([1, 2]))
