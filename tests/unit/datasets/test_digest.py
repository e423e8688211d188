"""The digest of a table: its bytes as documented, and what it tells apart."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from equipoise.queries.schema import Attribute, Schema
from equipoise_server.datasets import dense_counts
from equipoise_server.datasets.coded_counts import CodedCounts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.source import source_at

SCHEMA = Schema((Attribute("x", ("a", "b", "c")),))


def test_the_bytes_are_those_of_the_documentation() -> None:
    records = {(0, 1, 0): 5, (1, 2, 300): 2**40}
    said = b"".join(
        b"".join(code.to_bytes(4, "little") for code in codes) + count.to_bytes(8, "little")
        for codes, count in records.items()
    )
    expected = hashlib.sha256(b"equipoise data v1\n" + said).digest()
    histogram = np.zeros((2, 3, 500), dtype=np.int64)
    histogram[0, 1, 0], histogram[1, 2, 300] = records.values()
    assert data_digest(DenseCounts(histogram.reshape(-1), (2, 3, 500))) == expected
    codes = np.array([*reversed(records)], dtype=np.uint16).T
    coded = CodedCounts.of((2, 3, 500), codes, np.array([*reversed(records.values())]))
    assert data_digest(coded) == expected


def test_blocks_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    histogram = np.arange(100)
    whole = data_digest(DenseCounts(histogram))
    monkeypatch.setattr(dense_counts, "BLOCK", 7)
    assert data_digest(DenseCounts(histogram)) == whole


@pytest.mark.parametrize("other", [[2, 1, 0], [0, 1, 2], [1, 2, 1], [1, 2, 0, 0, 1], [0, 1, 2, 0]])
def test_every_other_histogram_has_another_digest(other: list[int]) -> None:
    assert data_digest(DenseCounts(np.array([1, 2, 0]))) != data_digest(DenseCounts(np.array(other)))


def test_the_order_of_the_rows_does_not_matter_but_one_changed_row_does(tmp_path: Path) -> None:
    tables = {"one": "a b b c", "turned": "c b a b", "changed": "a b c c"}
    digests = {}
    for name, rows in tables.items():
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(["x", *rows.split()]) + "\n")
        digests[name] = data_digest(source_at(path).counts(SCHEMA))
    assert digests["one"] == digests["turned"]
    assert digests["one"] != digests["changed"]
