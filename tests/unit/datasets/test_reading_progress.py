"""How far the reading of a file is, which DuckDB tells while it reads."""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import pytest

from equipoise_server.datasets.files.grouping import connect
from equipoise_server.datasets.files.reported import reported

LONG = "SELECT count(*) FROM range(1000000000000) AS t(x) WHERE hash(x) = 1"  # hours, if nobody ends it


@pytest.mark.slow
def test_hundredths_are_told_while_a_query_runs_and_not_afterwards(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    connection = connect([tmp_path])

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        connection.interrupt()

    with pytest.raises(duckdb.InterruptException), reported(connection, progress):
        connection.execute(LONG).fetchall()
    assert told
    assert all(total == 100 and 0 <= done <= 100 for done, total in told)
    assert not any(thread.name == "reading-progress" for thread in threading.enumerate())


def test_a_query_that_fails_ends_the_reports(tmp_path: Path) -> None:
    with connect([tmp_path]) as connection, pytest.raises(duckdb.Error), reported(connection, lambda *_: None):
        connection.execute("SELECT * FROM nothing").fetchall()
    assert not any(thread.name == "reading-progress" for thread in threading.enumerate())
