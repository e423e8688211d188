"""Tables that are read once for all grants: sealed files, of the registered table alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from harness.round_job import SCHEMA, TABLE, round_job
from harness.waiting import PATIENCE

from equipoise_server.computation.data import ReadBefore, load_data
from equipoise_server.datasets.mapped_counts import map_counts
from equipoise_server.workers.shared_tables import SharedTables
from equipoise_server.workers.table_worker import TableJob

pytestmark = pytest.mark.slow


@pytest.fixture
def tables() -> Iterator[SharedTables]:
    made = SharedTables(PATIENCE)
    yield made
    made.close()


@pytest.fixture
def job(tmp_path: Path) -> TableJob:
    made = round_job(tmp_path)
    return TableJob(made.source, made.schema, made.setting.records, made.data_digest)


def test_a_table_is_read_once_and_nobody_can_change_what_was_read(
    tables: SharedTables, job: TableJob, tmp_path: Path
) -> None:
    table = tables.table(job)
    assert table.wait(PATIENCE)
    (tmp_path / TABLE).unlink()
    assert tables.table(job) is table
    assert table.file is not None
    counts = map_counts(table.file)
    assert counts.dense().tolist() == [70, 30]
    for change in (lambda file: os.pwrite(file, b"0", 0), lambda file: os.ftruncate(file, 0)):
        with pytest.raises(PermissionError):
            change(table.file)
    # Whoever reads it compares it with what was registered.
    assert load_data(ReadBefore(table.file), SCHEMA, 100, job.data_digest).counts.records == 100


def test_a_table_that_is_not_the_registered_one_is_not_kept(tables: SharedTables, job: TableJob) -> None:
    table = tables.table(replace(job, data_digest=bytes(32)))
    assert table.wait(PATIENCE)
    assert table.file is None
    assert tables.table(replace(job, data_digest=bytes(32))) is table  # it is not read again at once


def test_what_no_grant_is_about_is_forgotten(tables: SharedTables, job: TableJob) -> None:
    first = tables.table(job)
    assert first.wait(PATIENCE)
    tables.keep([job])
    assert tables.table(job) is first
    tables.keep([])
    again = tables.table(job)
    assert again is not first
    assert again.wait(PATIENCE)
    assert first.file != again.file


def test_nothing_is_read_once_the_server_stops(job: TableJob) -> None:
    tables = SharedTables(PATIENCE)
    waiting = tables.table(job)
    tables.close()
    assert waiting.wait(PATIENCE)
    after = tables.table(job)
    assert after.wait(PATIENCE)
    assert after.file is None
