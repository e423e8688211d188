"""Rounds on a table that a real Spark counts: the answers of a file with its rows, also after a kill."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from harness.answers import flat_chunks
from harness.engines import for_spark
from harness.rounds_bench import SCHEMA, TERMS, Bench

from equipoise.model.results import ResultColumns
from equipoise.wire.results import chunk_from_bytes

pytestmark = [pytest.mark.full, pytest.mark.slow]
ON_LAKE = replace(TERMS, dataset="lake")
START_SECONDS = 900  # a worker yields to all others, and starting Spark takes it ten seconds of processor time


def chunks(bench: Bench, analyst: str, round_id: str) -> list[ResultColumns]:
    return [chunk_from_bytes(chunk) for chunk in bench.rounds.analyst_views.results(analyst, round_id, 0, 100)]


def children(of: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{of}/task/{of}/children").read_text().split()]


def test_a_round_on_spark_gives_the_answers_of_one_on_a_file_and_outlives_its_reader(on_sqlite: Bench) -> None:
    data = on_sqlite.directory / "data"
    pq.write_table(pc.read_csv(data / "shop.csv"), data / "lake.parquet")
    for_spark(data, "lake.parquet")
    # The digest is that of the same rows in the file, so the people are known.
    on_sqlite.rounds.datasets.register("lake", "t.spark.toml", SCHEMA, None, None, "lake", people="same-as:shop")
    of_file = on_sqlite.released().id
    round_id = on_sqlite.sealed(ON_LAKE)
    before = on_sqlite.charged()
    on_sqlite.rounds.lifecycle.run(round_id, "run")
    worker = on_sqlite.rounds.runner.process_id(round_id)
    assert worker is not None
    limit = time.monotonic() + START_SECONDS
    while not (readers := children(worker)):
        assert time.monotonic() < limit
        time.sleep(0.05)
    os.kill(readers[0], signal.SIGKILL)
    assert "Spark's process has ended while it read" in on_sqlite.wait(round_id, START_SECONDS).phase
    assert on_sqlite.charged() == before
    on_sqlite.rounds.lifecycle.run(round_id, "again")
    assert on_sqlite.wait(round_id, START_SECONDS).complete
    on_sqlite.rounds.lifecycle.release(round_id, "release")
    on_sqlite.clock.move(60)
    for analyst in ("ann", "bob"):
        assert flat_chunks(chunks(on_sqlite, analyst, round_id)) == flat_chunks(chunks(on_sqlite, analyst, of_file))
