"""A worker that tells what it has been given, and waits for ever; and a server with one, to be killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from equipoise_server.workers import process


@dataclass(frozen=True)
class Given:
    """`files`: those that are open. `loaded`: modules. `threads`: those of the process forked from."""

    process_id: int
    forked_from: int
    loaded: frozenset[str]
    files: frozenset[str]
    threads: tuple[str, ...]


def wait_for_ever(pipe: Connection, _: object) -> None:
    """What the process runs: it tells once what it has, and ends with its server only."""
    # Before anything else is loaded here.
    loaded = frozenset(sys.modules)
    files = set()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            files.add(str(each.readlink()))
    names = [path.read_text().strip() for path in Path(f"/proc/{os.getppid()}/task").glob("*/comm")]
    pipe.send(Given(os.getpid(), os.getppid(), loaded, frozenset(files), tuple(names)))
    time.sleep(3600)


def work_without_a_word(pipe: Connection, seconds: float) -> None:
    """What the process runs: it computes for some seconds of its processor time, and then sends their number."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    pipe.send(seconds)


def let_another_work(pipe: Connection, seconds: float) -> None:
    """What the process runs: it waits for another process, which computes, and then sends the number of seconds."""
    working = f"import time\nwhile time.process_time() < {seconds}: pass"
    subprocess.run([sys.executable, "-c", working], check=True)
    pipe.send(seconds)


def main() -> None:
    """Start a worker, print its process id and that of the process it was forked from, and wait to be killed."""
    worker = process.start(wait_for_ever, None, "worker", process.AMONG_CALLS)
    given: Given = worker.pipe.recv()
    print(given.process_id, given.forked_from, flush=True)
    time.sleep(3600)
