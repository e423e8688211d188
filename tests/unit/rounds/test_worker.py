"""The worker's parts without a process: what it computes, and how often it speaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from equipoise.errors import DataLoss, InvalidArgument
from equipoise.queries import Marginal, attribute
from equipoise.schema import Attribute, Schema
from equipoise.wire import chunk_from_bytes, workload_to_bytes
from equipoise_server.mechanisms.interface import Budget, Setting, Share
from equipoise_server.mechanisms.registry import mechanism
from equipoise_server.rounds import worker
from equipoise_server.rounds.worker import Advance, Job, compute_round, peak_memory_bytes

SCHEMA = Schema((Attribute("colour", ("red", "green")),))


class Pipe:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[object] = []

    def send(self, message: object) -> None:
        """Keep a message."""
        self.sent.append(message)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    table = tmp_path / "table.csv"
    table.write_text("colour\n" + "red\n" * 70 + "green\n" * 30)
    setting = Setting(
        records=100,
        universe_size=2,
        shares=(Share("bob", 2, 2), Share("ann", 2, 3)),
        unit="query",
        data_budget=Budget(20.0, 1e-3),
        analyst_budget=Budget(20.0, 1e-3),
        beta=0.05,
        options={},
    )
    red = attribute("colour") == "red"
    return Job(
        round_id="r",
        table=table,
        schema=SCHEMA.to_json(),
        setting=setting,
        plan=mechanism("equilibrium").plan(setting),
        workloads={"ann": workload_to_bytes((red, Marginal(("colour",))))},
        seed=bytes(32),
    )


def test_the_same_job_gives_the_same_bytes_and_another_seed_others(job: Job) -> None:
    phases: list[str] = []
    first = compute_round(job, lambda phase, *_: phases.append(phase))
    again = compute_round(job, lambda *_: None)
    other = compute_round(replace(job, seed=b"\1" * 32), lambda *_: None)
    assert first.streams == again.streams
    assert first.synopsis.tolist() != other.synopsis.tolist()  # the three answers may agree by chance
    np.testing.assert_array_equal(first.synopsis, again.synopsis)
    assert phases[:2] == ["load", "load"]
    assert set(first.streams) == {"ann"}
    chunk = chunk_from_bytes(first.streams["ann"][-1])
    assert (chunk.round_id, len(chunk.values), chunk.last) == ("r", 3, True)


def test_another_number_of_records_is_refused(job: Job) -> None:
    job.table.write_text("colour\n" + "red\n" * 99)
    with pytest.raises(DataLoss, match="99 records, but 100"):
        compute_round(job, lambda *_: None)


def test_records_that_the_schema_refuses_stop_the_run(job: Job) -> None:
    job.table.write_text("colour\n" + "red\n" * 99 + "blue\n")
    with pytest.raises(InvalidArgument, match="colour"):
        compute_round(job, lambda *_: None)


def test_progress_is_told_five_times_a_second_and_at_every_change(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 0.0
    monkeypatch.setattr("equipoise_server.rounds.worker.time.monotonic", lambda: seconds)
    pipe = Pipe()
    throttled = cast("Callable[[Pipe], Callable[[str, int, int], None]]", worker._throttled)
    progress = throttled(pipe)
    for done in range(1001):
        seconds = 100 + done / 1000
        progress("game", done, 1000)
    progress("repair", 0, 2)
    assert len(pipe.sent) <= 1 + 5 + 1 + 1
    assert pipe.sent[0] == Advance("game", 0, 1000)
    assert pipe.sent[-2:] == [Advance("game", 1000, 1000), Advance("repair", 0, 2)]


def test_peak_memory_is_in_bytes() -> None:
    assert 10 << 20 < peak_memory_bytes() < 64 << 30
