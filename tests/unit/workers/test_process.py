"""Worker processes: what they are given of the server, how they end with it, and what is known of their end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from harness.waiting_worker import Given, wait_for_ever

from equipoise.errors import Unavailable
from equipoise_server.workers.process import (
    AMONG_CALLS,
    AUTOGROUP,
    BEHIND_CALLS,
    PROGRAM,
    Failed,
    WorkerProcess,
    converse,
    load_program,
    start,
)

SECONDS = 120
TESTS = Path(__file__).parents[2]


@pytest.fixture
def started() -> Iterator[tuple[WorkerProcess, Given]]:
    process = start(wait_for_ever, None, "worker", BEHIND_CALLS)
    try:
        given: Given = process.pipe.recv()
        yield process, given
    finally:
        process.end()
        process.pipe.close()


@pytest.mark.slow
def test_a_worker_has_the_program_and_nothing_else_of_the_server(tmp_path: Path) -> None:
    load_program()
    secret = tmp_path / "secret"
    with secret.open("w") as file:
        os.set_inheritable(file.fileno(), True)
        process = start(wait_for_ever, None, "worker", AMONG_CALLS)
        given: Given = process.pipe.recv()
        process.end()
        process.pipe.close()
    assert given.process_id == process.pid
    assert given.forked_from != os.getpid()
    assert set(PROGRAM) <= given.loaded  # before it was asked for
    assert "pytest" not in given.loaded
    assert "/dev/null" in given.files
    assert str(secret) not in given.files
    # Its own name is that of all its threads; gRPC's and DuckDB's have names of their own, or are many.
    assert len(set(given.threads)) == 1
    assert len(given.threads) <= 1 + 2 * (os.cpu_count() or 1)  # of two libraries of linear algebra


def test_who_has_ended_is_known_by_its_exit_code_to_every_thread(started: tuple[WorkerProcess, Given]) -> None:
    process, _ = started
    codes: list[int | None] = []
    waiting = [threading.Thread(target=lambda: codes.append(process.join())) for _ in range(8)]
    for each in waiting:
        each.start()
    assert process.is_alive()
    process.kill()
    for each in waiting:
        each.join(SECONDS)
    assert codes == [-signal.SIGKILL] * 8
    assert not process.is_alive()
    process.kill()  # it, or nobody


@pytest.mark.full
def test_a_killed_server_leaves_no_process_behind() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "from harness.waiting_worker import main; main()"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)])},
    ) as server:
        assert server.stdout is not None
        left = [int(each) for each in server.stdout.readline().split()]
        assert len(left) == 2
        assert all(alive(each) for each in left)
        server.kill()
    end = time.monotonic() + SECONDS
    while any(alive(each) for each in left):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.nightly
@pytest.mark.slow
def test_workers_start_again_where_the_process_they_are_forked_from_was_ended(
    started: tuple[WorkerProcess, Given],
) -> None:
    process, given = started
    os.kill(given.forked_from, signal.SIGKILL)
    other = None
    end = time.monotonic() + SECONDS
    while other is None:
        with suppress(Unavailable):  # while it is ending
            other = start(wait_for_ever, None, "worker", BEHIND_CALLS)
        assert time.monotonic() < end
    again: Given = other.pipe.recv()
    assert again.forked_from != given.forked_from
    other.kill()
    assert other.join() == -signal.SIGKILL
    other.pipe.close()
    # The one that was there before is still known, and ended.
    assert process.is_alive()
    process.kill()
    process.join()
    assert not alive(given.process_id)


def test_calls_go_before_a_worker() -> None:
    process = start(wait_for_ever, None, "worker", BEHIND_CALLS)
    try:
        assert process.pipe.recv().process_id == process.pid
        assert process.pid is not None
        # 19 is the lowest there is.
        lowered = min(19, os.getpriority(os.PRIO_PROCESS, 0) + BEHIND_CALLS)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == lowered
        # In a session of its own, which is as nice where sessions are weighed against one another.
        assert os.getsid(process.pid) == process.pid
        if AUTOGROUP.exists():
            assert Path(f"/proc/{process.pid}/autogroup").read_text().endswith(f" nice {lowered}\n")
    finally:
        process.end()
        process.pipe.close()


def alive(process_id: int) -> bool:
    """Whether it still runs; who has ended and is waited for by nobody does not."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def meet_an_end(_: Connection, __: None) -> None:
    """What reading a file that was cut off raises, in the same words as a pipe whose other end was closed."""
    raise EOFError("vermilion")


def test_whatever_a_worker_meets_is_told_and_is_the_last_that_is() -> None:
    pipe, other = multiprocessing.Pipe()
    converse(meet_an_end, other, None)
    told = pipe.recv()
    assert isinstance(told, Failed)
    assert told.kind.startswith("EOFError at ")
    assert "vermilion" not in repr(told)
    with pipe, pytest.raises(EOFError):
        pipe.recv()
