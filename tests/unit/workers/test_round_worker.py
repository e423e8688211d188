"""What a round's worker tells its server: how far it is, what it has computed, and nothing of data in errors."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from harness.round_job import TABLE, round_job

from equipoise_server.computation.round import Job, compute_round
from equipoise_server.workers import round_worker as worker
from equipoise_server.workers.process import Failed, converse
from equipoise_server.workers.round_worker import Advance


class Pipe:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[object] = []

    def send(self, message: object) -> None:
        """Keep a message."""
        self.sent.append(message)


def silent(*_: object) -> None:
    """Hears no progress."""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return round_job(tmp_path)


def test_progress_is_told_five_times_a_second_and_at_every_change(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 0.0
    monkeypatch.setattr("equipoise_server.workers.round_worker.time.monotonic", lambda: seconds)
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


def told(job: Job) -> list[object]:
    """What a worker tells its server of a job."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    with receiver:
        converse(worker.serve_job, sender, job)
        found = []
        with suppress(EOFError):
            while True:
                found.append(receiver.recv())
    return found


@pytest.mark.slow
def test_an_unexpected_error_is_told_without_its_text(job: Job) -> None:
    odd = replace(job, setting=replace(job.setting, beta="vermilion"))  # type: ignore[arg-type]
    with pytest.raises(Exception, match="vermilion"):
        compute_round(odd, silent)
    (*_, failed) = told(odd)
    assert isinstance(failed, Failed)
    assert re.fullmatch(r"\w+ at \w+\.py:\d+", failed.kind)
    assert failed.problem == f"something unexpected happened: {failed.kind}"


def test_counts_of_a_table_are_for_operators_and_not_for_the_log(job: Job, tmp_path: Path) -> None:
    (tmp_path / TABLE).write_text("colour\n" + "red\n" * 99)
    (*_, failed) = told(job)
    assert isinstance(failed, Failed)
    assert failed.kind == "DataLoss"
    assert "99 records" in failed.problem


def test_a_worker_whose_server_has_died_says_nothing(job: Job, capfd: pytest.CaptureFixture[str]) -> None:
    receiver, sender = multiprocessing.Pipe(duplex=False)
    receiver.close()
    converse(worker.serve_job, sender, job)
    assert capfd.readouterr() == ("", "")
