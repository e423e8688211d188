"""The worker's parts: what it computes, how often it speaks, and that calls go before it."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from equipoise.errors import DataLoss, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal
from equipoise.wire.results import chunk_from_bytes
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.datasets.digest import data_digest
from equipoise_server.mechanisms.interface import Answers, Outcome, PublicParameters
from equipoise_server.mechanisms.registry import mechanism
from equipoise_server.rounds import worker
from equipoise_server.rounds.worker import (
    Advance,
    Failed,
    Job,
    StreamPart,
    compute_round,
    peak_memory_bytes,
    stream_parts,
)

SCHEMA = Schema((Attribute("colour", ("red", "green")),))


class Pipe:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[object] = []

    def send(self, message: object) -> None:
        """Keep a message."""
        self.sent.append(message)


def silent(*_: object) -> None:
    """Hears no progress."""


def parts(job: Job, outcome: Outcome) -> list[StreamPart]:
    """What the worker sends of an outcome."""
    return list(stream_parts(job, outcome, silent))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    table = tmp_path / "table.csv"
    table.write_text("colour\n" + "red\n" * 70 + "green\n" * 30)
    setting = PublicParameters(
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
        data_digest=data_digest(DenseCounts(np.array([70, 30]))),
    )


def test_the_same_job_gives_the_same_bytes_and_another_seed_others(job: Job) -> None:
    phases: list[str] = []
    first = compute_round(job, lambda phase, *_: phases.append(phase))
    again = compute_round(job, silent)
    other = compute_round(replace(job, seed=b"\1" * 32), silent)
    assert parts(job, first) == parts(job, again)
    assert first.synopsis.tolist() != other.synopsis.tolist()  # the three answers may agree by chance
    np.testing.assert_array_equal(first.synopsis, again.synopsis)
    assert phases[:2] == ["load", "load"]
    (part,) = parts(job, first)
    assert (part.analyst, part.first_sequence) == ("ann", 1)
    chunk = chunk_from_bytes(part.chunks[-1])
    assert (chunk.round_id, len(chunk.values), chunk.last) == ("r", 3, True)


def test_streams_are_sent_some_messages_at_a_time(job: Job) -> None:
    """However long a stream is, at most 64 of its messages exist at once."""
    columns = {
        name: Answers(np.arange(count), np.ones(count, dtype=np.uint8), np.zeros(count, dtype=np.int64))
        for name, count in (("ann", 100 * 1024 + 1), ("bob", 1))
    }
    sent = parts(job, Outcome(columns, np.zeros(0, dtype=np.int64)))
    assert [(part.analyst, part.first_sequence, len(part.chunks)) for part in sent] == [
        ("ann", 1, 64),
        ("ann", 65, 37),
        ("bob", 1, 1),
    ]
    read = [chunk_from_bytes(chunk) for part in sent[:2] for chunk in part.chunks]
    assert [chunk.sequence for chunk in read] == list(range(1, 102))
    np.testing.assert_array_equal(np.concatenate([chunk.values for chunk in read]), columns["ann"].values)


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


def told(job: Job) -> list[object]:
    """What a worker tells its server of a job."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    with receiver:
        worker.serve_job(sender, job)
        found = []
        with suppress(EOFError):
            while True:
                found.append(receiver.recv())
    return found


def test_an_unexpected_error_is_told_without_its_text(job: Job) -> None:
    odd = replace(job, setting=replace(job.setting, beta="vermilion"))  # type: ignore[arg-type]
    with pytest.raises(Exception, match="vermilion"):
        compute_round(odd, silent)
    (*_, failed) = told(odd)
    assert isinstance(failed, Failed)
    assert re.fullmatch(r"\w+ at \w+\.py:\d+", failed.kind)
    assert failed.problem == f"something unexpected happened: {failed.kind}"


def test_counts_of_a_table_are_for_operators_and_not_for_the_log(job: Job) -> None:
    job.table.write_text("colour\n" + "red\n" * 99)
    (*_, failed) = told(job)
    assert isinstance(failed, Failed)
    assert failed.kind == "DataLoss"
    assert "99 records" in failed.problem


def test_a_worker_whose_server_has_died_says_nothing(job: Job, capfd: pytest.CaptureFixture[str]) -> None:
    receiver, sender = multiprocessing.Pipe(duplex=False)
    receiver.close()
    worker.serve_job(sender, job)
    assert capfd.readouterr() == ("", "")
