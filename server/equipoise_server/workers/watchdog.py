"""Ends workers that owe their server a message and do not work: those that were stopped, and those that hang.

A worker's heartbeat is the processor time that Linux counts for it. So a worker that computes for hours in one call
beats as well as any other, and a worker does nothing for its heartbeat. A worker that owes nothing may rest, and
one that reports how far a cluster has counted its table is at work. So is one whose own processes compute: it may
wait for a Spark of its own.

The limit counts looks, one each second. A pause of the server, or of the whole machine, is one look.
"""

from __future__ import annotations

import threading
from multiprocessing.connection import wait
from pathlib import Path
from typing import Protocol

LOOK_SECONDS = 1.0
IDLE_SECONDS = 120  # the default of `Config.worker_idle_seconds`
USER_TIME, SYSTEM_TIME = 11, 12  # places in /proc/PID/stat after the name, see proc(5)


class Watched(Protocol):
    """What the watchdog knows of a worker.

    `owes`: whether the server waits for it. `messages`: how many it has sent. `pid`: its process id.
    """

    owes: bool
    messages: int
    stalled: bool

    @property
    def pid(self) -> int | None:
        """The process id."""

    def kill(self) -> None:
        """Kill the process, if it has not ended."""


def watch(worker: Watched, descriptor: int, idle_seconds: float, look_seconds: float = LOOK_SECONDS) -> None:
    """Watch a worker in a thread until it ends.

    Args:
        worker: the worker. `stalled` is set before it is killed.
        descriptor: the worker's process descriptor, open until the worker has ended.
        idle_seconds: how long a worker may owe a message without using processor time.
        look_seconds: the time between two looks.
    """
    watching = threading.Thread(
        target=_watch, args=(worker, descriptor, idle_seconds, look_seconds), name="watchdog", daemon=True
    )
    watching.start()


def _watch(worker: Watched, descriptor: int, idle_seconds: float, look_seconds: float) -> None:
    idle: float = 0
    used: int | None = None
    messages = 0
    while not wait([descriptor], timeout=look_seconds):
        before, used = used, processor_time(worker.pid or 0)
        heard, messages = messages, worker.messages
        rests = used is not None and used == before and messages == heard
        idle = idle + look_seconds if worker.owes and rests else 0
        if idle >= idle_seconds:
            worker.stalled = True
            worker.kill()
            return


def processor_time(pid: int) -> int | None:
    """Return the processor time that a process has used, in clock ticks; None where Linux does not tell.

    That of the processes which it has begun, and these in turn, counts as its own while they live.
    """
    process = Path(f"/proc/{pid}")
    try:
        fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
        begun = [int(each) for path in process.glob("task/*/children") for each in path.read_text().split()]
    except OSError:
        return None
    own = int(fields[USER_TIME]) + int(fields[SYSTEM_TIME])
    return own + sum(processor_time(each) or 0 for each in begun)
