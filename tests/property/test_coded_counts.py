"""Coded distinct records and the dense histogram must tell the same of every table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from harness.naive_workloads import SCHEMA, workloads
from hypothesis import given
from hypothesis import strategies as st

from equipoise.queries import listed_workload, record_list
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.datasets import coded_counts
from equipoise_server.datasets.coded_counts import CodedCounts, code_type
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.datasets.digest import data_digest

SIZES = SCHEMA.sizes
AXIS_SETS = [axes for ways in range(len(SIZES) + 1) for axes in itertools.combinations(range(len(SIZES)), ways)]
groups = st.lists(
    st.tuples(st.tuples(*(st.integers(0, size - 1) for size in SIZES)), st.integers(0, 70) | st.just(2**40)),
    min_size=1,
    max_size=150,
)


def both(groups: list[tuple[tuple[int, ...], int]]) -> tuple[CodedCounts, DenseCounts]:
    codes = [np.array([record[axis] for record, _ in groups]) for axis in range(len(SIZES))]
    counts = np.array([count for _, count in groups])
    histogram = np.zeros(SCHEMA.universe_size, dtype=np.int64)
    np.add.at(histogram, np.ravel_multi_index(tuple(codes), SIZES), counts)
    return CodedCounts.of(SIZES, np.array(codes, dtype=code_type(SIZES)), counts), DenseCounts(histogram, SIZES)


@pytest.fixture(params=["tables", "records"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """By tables of the touched axes, and on records, in blocks that cut both."""
    if request.param == "records":
        monkeypatch.setattr(listed_workload, "BOXES_A_TABLE", 1 << 40)
    else:
        monkeypatch.setattr(listed_workload, "BOXES_A_TABLE", 1)
        monkeypatch.setattr(listed_workload, "CELLS_A_RECORD", 1e9)
    monkeypatch.setattr(record_list, "BLOCK", 7)
    monkeypatch.setattr(listed_workload, "BLOCK", 7)
    monkeypatch.setattr(coded_counts, "BLOCK", 5)


@pytest.mark.usefixtures("by")
@given(groups, workloads)
def test_both_count_alike(groups: list[tuple[tuple[int, ...], int]], asked: list[Statement]) -> None:
    coded, dense = both(groups)
    assert (coded.universe_size, coded.records) == (dense.universe_size, dense.records)
    workload = compile_workload(asked, SCHEMA)
    assert coded.count(workload).tolist() == dense.count(workload).tolist()
    tables = {axes: table.tolist() for axes, table in dense.marginals(AXIS_SETS)}
    assert {axes: table.tolist() for axes, table in coded.marginals(AXIS_SETS)} == tables
    rows = [
        [
            [*codes, count]
            for block in data.occupied()
            for codes, count in zip(*map(np.ndarray.tolist, block), strict=True)
        ]
        for data in (coded, dense)
    ]
    assert rows[0] == rows[1]
    assert data_digest(coded) == data_digest(dense)


@given(st.lists(st.tuples(*[st.integers(0, 65_535)] * 9), max_size=20))
def test_records_of_many_attributes_are_told_apart_and_ascend(records: list[tuple[int, ...]]) -> None:
    sizes = (65_536,) * 9  # more than one number holds
    coded = CodedCounts.of(
        sizes,
        np.array(records).reshape(-1, 9).T.astype(code_type(sizes)),
        np.ones(len(records), dtype=np.int64),
    )
    rows = [tuple(row) for block, _ in coded.occupied() for row in block.tolist()]
    counts = [count for _, block in coded.occupied() for count in block.tolist()]
    assert rows == sorted(set(records))
    assert counts == [records.count(row) for row in rows]


def test_the_universe_cannot_be_listed() -> None:
    sizes = (2,) * 39
    coded = CodedCounts.of(sizes, np.zeros((39, 1), dtype=np.uint8), np.array([1]))
    with pytest.raises(ValueError, match=r"has about 2\^39 possible records: too many for a list of all"):
        coded.dense()


def test_a_workload_over_another_universe_is_refused() -> None:
    coded = CodedCounts.of((2, 2), np.zeros((2, 1), dtype=np.uint8), np.array([1]))
    other = compile_workload([], Schema((Attribute("a", ("0", "1")),)))
    with pytest.raises(ValueError, match="another universe"):
        coded.count(other)
