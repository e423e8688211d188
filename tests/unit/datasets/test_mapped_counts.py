"""Counts that several processes read from one file in memory: the same as those that were written."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

from equipoise_server.datasets.coded_counts import CodedCounts
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.mapped_counts import map_counts, write_counts

CODES = np.array([[3, 0, 3], [0, 1, 0]], dtype=np.uint8)
TABLES: list[DenseCounts | CodedCounts] = [
    DenseCounts(np.arange(8), (4, 2)),
    CodedCounts.of((4, 2), CODES, np.array([1, 5, 2])),
    CodedCounts.of((4, 2), CODES[:, :0], np.zeros(0, dtype=np.int64)),
]


@pytest.fixture
def file() -> Iterator[int]:
    made = os.memfd_create("counts")
    yield made
    os.close(made)


@pytest.mark.parametrize("counts", TABLES, ids=["dense", "coded", "empty"])
def test_counts_are_read_as_they_were_written(counts: Counts, file: int) -> None:
    write_counts(counts, file)
    read = map_counts(file)
    assert type(read) is type(counts)
    assert data_digest(read) == data_digest(counts)
    assert (read.records, read.universe_size) == (counts.records, counts.universe_size)


def test_what_was_read_cannot_be_written_to_and_outlives_the_descriptor() -> None:
    made = os.memfd_create("counts")
    write_counts(TABLES[0], made)
    read = map_counts(made)
    os.close(made)
    with pytest.raises(ValueError, match="read-only"):
        read.dense()[0] = 1
    assert read.dense().tolist() == list(range(8))
