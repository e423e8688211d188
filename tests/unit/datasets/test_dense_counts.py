"""Every number that a table is asked for, against a count record by record."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.datasets import dense_counts
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.dense_counts import DenseCounts

SCHEMA = Schema((Attribute("a", ("0", "1")), Attribute("b", ("0", "1", "2")), Attribute("c", ("0", "1"))))
RECORDS = [(0, 2, 1)] * 3 + [(1, 0, 0)] * 5 + [(1, 2, 1)] + [(0, 0, 0)] * 2


def table() -> Counts:
    histogram = np.zeros(SCHEMA.universe_size, dtype=np.int64)
    np.add.at(histogram, np.ravel_multi_index(tuple(np.array(RECORDS).T), SCHEMA.sizes), 1)
    return DenseCounts(histogram, SCHEMA.sizes)


def test_the_size_is_that_of_the_universe_and_all_records_count() -> None:
    assert (table().universe_size, table().records) == (12, len(RECORDS))


def test_a_workload_counts_the_records_of_every_query() -> None:
    workload = compile_workload([Marginal(("a", "c")), (attribute("b") == "2") & (attribute("c") == "1")], SCHEMA)
    cells = [sum((a, c) == (x, z) for x, _, z in RECORDS) for a, c in itertools.product(range(2), range(2))]
    assert table().count(workload).tolist() == [*cells, 4]


def test_every_marginal_comes_once_with_its_counts() -> None:
    wanted = [axes for ways in range(4) for axes in itertools.combinations(range(3), ways)]
    found = list(table().marginals(wanted))
    assert sorted(axes for axes, _ in found) == sorted(wanted)
    for axes, counts in found:
        shape = tuple(SCHEMA.sizes[axis] for axis in axes)
        expected = np.zeros(shape, dtype=np.int64)
        for record in RECORDS:
            expected[tuple(record[axis] for axis in axes)] += 1
        assert counts.dtype == np.int64
        assert counts.shape == shape
        assert (counts == expected).all()


@pytest.mark.parametrize("block", [1, 3, 4, 100])
def test_distinct_records_ascend_and_come_in_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_counts, "BLOCK", block)
    blocks = list(table().occupied())
    assert all(len(codes) == len(counts) <= block for codes, counts in blocks)
    codes, counts = (np.concatenate(part) for part in zip(*blocks, strict=True))
    assert [tuple(record) for record in codes.tolist()] == sorted(set(RECORDS))
    assert counts.tolist() == [2, 3, 5, 1]


def test_an_empty_table_has_no_distinct_records() -> None:
    assert list(DenseCounts(np.zeros(4, dtype=np.int64)).occupied()) == []


@pytest.mark.parametrize("shape", [(11,), (2, 3, 2)])
def test_a_histogram_of_another_universe_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="a cell for each possible record"):
        DenseCounts(np.zeros(shape, dtype=np.int64), SCHEMA.sizes)
