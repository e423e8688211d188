"""Workloads over a list of records, against the naive matrix of queries by records, and the whole universe."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from harness.naive_workloads import RECORDS, SCHEMA, Linear, naive_matrix, seeds, workloads
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from equipoise.queries import listed_workload, packed_boxes, record_list
from equipoise.queries.combination import Combination
from equipoise.queries.compiled_workload import MAX_COEFFICIENTS
from equipoise.queries.listed_workload import ListedWorkload
from equipoise.queries.predicates import attribute
from equipoise.queries.record_list import RecordList
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload

SIZES = SCHEMA.sizes
EVERYTHING = np.array(np.unravel_index(np.arange(len(RECORDS)), SIZES), dtype=np.uint8)
# Records in any order, some of them several times, some never; more than one byte's bits, and none.
lists = st.lists(st.integers(0, len(RECORDS) - 1), max_size=40).map(np.array)
ways = st.sampled_from(["tables", "boxes"])


def over(statements: list[Linear], places: np.ndarray) -> ListedWorkload:
    compiled = compile_workload(statements, SCHEMA)
    return ListedWorkload(compiled, RecordList(SIZES, EVERYTHING[:, places.astype(np.int64)]))


def treated(way: str) -> Any:
    """By tables, or by boxes, in parts of records and of boxes that cut both."""
    tables = way == "tables"
    return mock.patch.multiple(
        listed_workload, BOXES_A_TABLE=1 if tables else 1 << 40, CELLS_A_RECORD=1e9, BLOCK=12
    )


@given(workloads, lists, seeds, ways)
def test_a_list_gives_the_columns_of_the_matrix(
    statements: list[Linear], places: np.ndarray, seed: int, way: str
) -> None:
    matrix = naive_matrix(statements)[:, places.astype(np.int64)]
    generator = np.random.default_rng(seed)
    k, size = matrix.shape
    with (
        treated(way),
        mock.patch.object(packed_boxes, "LOOKED_UP", 1),
        mock.patch.object(packed_boxes, "TREATED", 3),
        mock.patch.object(record_list, "BLOCK", 5),
    ):
        listed = over(statements, places)
        assert (listed.size, listed.query_count) == (size, k)
        weights = np.asarray(generator.integers(0, 2**46, size, dtype=np.int64))
        parts = np.asarray(weights / 2**46)
        assert listed.counts(weights).tolist() == (matrix @ weights).tolist()
        assert listed.counts(np.ones(size, dtype=np.int64)).tolist() == matrix.sum(axis=1).tolist()
        coefficients = np.asarray(generator.integers(-(2**30), 2**30, k, dtype=np.int64))
        assert listed.transpose(coefficients).tolist() == (coefficients @ matrix).tolist()
        some = generator.integers(0, k, 5 if k else 0)
        sparse = generator.integers(-(2**30), 2**30, len(some))
        assert listed.transpose_sparse(some, sparse).tolist() == (sparse @ matrix[some]).tolist()
        np.testing.assert_allclose(listed.expectations(parts), matrix @ parts, rtol=1e-12)
        reals = np.asarray(generator.normal(size=k))
        np.testing.assert_allclose(listed.combination(reals), reals @ matrix, rtol=1e-9, atol=1e-12)
        drawn = (
            generator.integers(0, size, generator.integers(0, 2 * size)) if size else np.zeros(0, dtype=np.int64)
        )
        assert listed.record_counts(drawn).tolist() == matrix[:, drawn].sum(axis=1).tolist()
        if k:
            growing = Combination(listed)
            growing.add(some, sparse)
            assert growing.at(drawn).tolist() == (sparse @ matrix[some])[drawn].tolist()


@given(workloads, seeds, ways)
def test_the_list_of_all_records_is_the_universe(statements: list[Linear], seed: int, way: str) -> None:
    dense = compile_workload(statements, SCHEMA)
    generator = np.random.default_rng(seed)
    with treated(way):
        listed = over(statements, np.arange(len(RECORDS)))
        assert listed.size == dense.size
        weights = generator.integers(0, 2**45, len(RECORDS))
        assert listed.counts(weights).tolist() == dense.counts(weights).tolist()
        coefficients = generator.integers(-(2**30), 2**30, dense.query_count)
        assert listed.transpose(coefficients).tolist() == dense.transpose(coefficients).tolist()
        places = generator.integers(0, len(RECORDS), 9)
        assert list(map(list, listed.categories(places))) == list(map(list, dense.categories(places)))


def test_attributes_of_many_categories_and_vectors_are_read_alike() -> None:
    """More vectors than categories, so that those of eight categories are looked up; the last byte is not full."""
    size, generator = 19, np.random.default_rng(5)
    codes = generator.integers(0, size, (2, 1000)).astype(np.uint8)
    numbers = [generator.permutation(size)[: 1 + place % size] for place in range(40)]
    schema = type(SCHEMA)(
        tuple(type(SCHEMA.attributes[0])(name, tuple(map(str, range(size)))) for name in ("a", "b"))
    )
    asked: list[Linear] = []
    rows: list[NDArray[np.bool_]] = []
    for own, other in zip(numbers, reversed(numbers), strict=True):
        one, two = attribute("a").isin(list(map(str, own))), attribute("b").isin(list(map(str, other)))
        asked += [one & two, one | two]  # the latter is all records less a box: a coefficient of -1
        inside = np.isin(codes[0], own), np.isin(codes[1], other)
        rows += [inside[0] & inside[1], inside[0] | inside[1]]
    matrix = np.array(rows, dtype=np.int64)
    with treated("boxes"):
        listed = ListedWorkload(compile_workload(asked, schema), RecordList(schema.sizes, codes))
        weights = generator.integers(0, 1000, (1000,))
        assert listed.counts(weights).tolist() == (matrix @ weights).tolist()
        coefficients = generator.integers(-1000, 1000, (len(asked),))
        assert listed.transpose(coefficients).tolist() == (coefficients @ matrix).tolist()


def test_what_does_not_fit_the_list_is_refused() -> None:
    listed = over([Marginal(("colour",))], np.array([3, 1]))
    ones = np.ones(3, dtype=np.int64)
    for wrong in (ones, np.array([2**53, 1])):
        with pytest.raises(ValueError, match=r"weight|sum"):
            listed.counts(wrong)
    for coefficients in (ones[:2], np.full(3, MAX_COEFFICIENTS)):
        with pytest.raises(ValueError, match=r"coefficients|sum"):
            listed.transpose(coefficients)
    with pytest.raises(ValueError, match="places"):
        listed.record_counts(np.array([2]))
    for queries in (np.array([3]), np.array([-1])):
        with pytest.raises(ValueError, match="queries"):
            listed.transpose_sparse(queries, ones[:1])
    with pytest.raises(ValueError, match="one coefficient for each"):
        listed.transpose_sparse(np.array([1]), ones)
    with pytest.raises(ValueError, match="another universe"):
        ListedWorkload(listed.compiled, RecordList((2,), np.zeros((1, 1), dtype=np.uint8)))


@pytest.mark.parametrize("codes", [[[0, 3]], [[-1, 0]], [[0], [0]]])
def test_codes_that_are_no_categories_are_refused(codes: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="code"):
        RecordList((3,), np.array(codes))
