"""The watchdog of workers: who owes a message and does not work is killed, and nobody else."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest
from harness.waiting_worker import let_another_work, wait_for_ever, work_without_a_word

from equipoise_server.workers.process import AMONG_CALLS, WorkerProcess, start
from equipoise_server.workers.watchdog import processor_time

IDLE_SECONDS = 2


@pytest.fixture
def waiting() -> Iterator[WorkerProcess]:
    process = start(wait_for_ever, None, "worker", AMONG_CALLS, IDLE_SECONDS)
    process.receive()
    try:
        yield process
    finally:
        process.end()
        process.pipe.close()


@pytest.mark.slow
def test_a_stopped_worker_that_owes_a_value_is_killed(waiting: WorkerProcess) -> None:
    assert waiting.pid is not None
    os.kill(waiting.pid, signal.SIGSTOP)
    with pytest.raises(EOFError):
        waiting.receive()
    assert waiting.stalled
    assert waiting.join() == -signal.SIGKILL


@pytest.mark.slow
def test_a_worker_that_takes_nothing_is_killed(waiting: WorkerProcess) -> None:
    """It runs, and waits for something that never comes."""
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        waiting.send(bytes(1 << 24))
    assert waiting.stalled


@pytest.mark.slow
def test_a_worker_that_owes_nothing_may_rest(waiting: WorkerProcess) -> None:
    time.sleep(2 * IDLE_SECONDS)
    assert waiting.is_alive()
    assert not waiting.stalled


@pytest.mark.nightly
def test_a_worker_that_computes_for_longer_than_the_limit_is_left_alone() -> None:
    process = start(work_without_a_word, 2.0 * IDLE_SECONDS, "worker", AMONG_CALLS, IDLE_SECONDS)
    assert process.receive() == 2.0 * IDLE_SECONDS
    assert not process.stalled
    process.end()
    process.pipe.close()


def test_processor_time_is_counted_by_its_process() -> None:
    before = processor_time(os.getpid())
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    after = processor_time(os.getpid())
    assert before is not None
    assert after is not None
    assert after > before
    assert processor_time(2**22 + 1) is None


@pytest.mark.nightly
def test_a_worker_that_waits_for_a_process_of_its_own_which_computes_is_left_alone() -> None:
    process = start(let_another_work, 2.0 * IDLE_SECONDS, "worker", AMONG_CALLS, IDLE_SECONDS)
    assert process.receive() == 2.0 * IDLE_SECONDS
    assert not process.stalled
    process.end()
    process.pipe.close()
