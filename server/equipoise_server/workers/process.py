"""How a worker process starts, forked from a process that has loaded the workers' program once; and how it speaks.

    process = start(serve_job, job, name, BEHIND_CALLS)
    message = process.pipe.recv()

Loading takes seconds of a processor. The server cannot fork itself, since it has threads and holds keys and the
store's connections; so multiprocessing starts one further process, a fresh interpreter that is given nothing of the
server's but its environment and standard error, loads the program, and forks a worker whenever it is asked to. It
runs nothing else, and ends when the server and all workers have ended.

A worker and its server speak over one pipe, in values of the worker's kind. `Failed` may come instead of any of
them, and is the last one.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import TypeVar

from equipoise.errors import EquipoiseError, Unavailable

BEHIND_CALLS = 10  # a run takes a tenth of a processor that calls need, and all that is left
AMONG_CALLS = 0
NICEST = 19  # there is
AUTOGROUP = Path("/proc/self/autogroup")
PROGRAM = ["equipoise_server.workers.round_worker", "equipoise_server.workers.session_worker"]

NO_WORKER = "no worker can be started now"

Work = TypeVar("Work")

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PROGRAM)


def load_program() -> None:
    """Have the workers' program loaded in its own process, unless it is, and do not wait for it."""
    forkserver.ensure_running()


class WorkerProcess:
    """A worker process, as its server sees it. Safe to use from threads, but for `pipe`, the server's end."""

    def __init__(self, process: ForkServerProcess, pipe: Connection) -> None:
        self.pipe = pipe
        self._process = process
        # multiprocessing reads the exit code from a pipe: of two threads that read at once one would miss it.
        self._lock = threading.Lock()
        # The server is not the worker's parent: an id may be another process's as soon as the worker has ended, and
        # where the worker's parent has ended nobody says whether the worker has. Linux has a better name for it.
        self._descriptor: int | None = None
        with suppress(AttributeError, ProcessLookupError):
            self._descriptor = os.pidfd_open(process.pid or 0)
            weakref.finalize(self, os.close, self._descriptor)

    @property
    def pid(self) -> int | None:
        """The process id."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        if self._descriptor is not None:
            return not wait([self._descriptor], timeout=0)
        with self._lock:
            return self._process.is_alive()

    def kill(self) -> None:
        """End it. Does nothing where it has ended."""
        if self._descriptor is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        elif self.is_alive():
            self._process.kill()

    def end(self) -> None:
        """Kill it, and wait for its end."""
        self.kill()
        self.join()

    def join(self) -> int | None:
        """Wait for its end.

        Returns:
            The exit code; that of a signal is negative.
        """
        wait([self._process.sentinel if self._descriptor is None else self._descriptor])
        with self._lock:
            self._process.join()
            return self._process.exitcode


def start(serve: Callable[[Connection, Work], None], work: Work, name: str, behind: int) -> WorkerProcess:
    """Start a process that calls `serve(pipe, work)` with its end of a new pipe.

    Args:
        serve: A function of a module. What it raises is told as `Failed`.
        work: What is pickled for it.
        name: For operators.
        behind: How much nicer than the server the process is.

    Raises:
        Unavailable: No process can be started now.
    """
    niceness = min(NICEST, os.getpriority(os.PRIO_PROCESS, 0) + behind)
    called = pickle.dumps((serve, work))
    pipe, other = multiprocessing.Pipe()
    # Only the worker may hold the other end afterwards, so that its death ends the conversation.
    with other:
        process = _context.Process(target=_begin, args=(other, called, niceness), name=name, daemon=True)
        try:
            process.start()
        except (EOFError, OSError):  # the process that forks is ending; the next start begins another one
            pipe.close()
            raise Unavailable(NO_WORKER) from None
    return WorkerProcess(process, pipe)


def _begin(pipe: Connection, called: bytes, niceness: int) -> None:
    # Before the first thread: Linux counts niceness by thread, and new ones get that of their maker.
    os.setpriority(os.PRIO_PROCESS, 0, niceness)
    # A terminal interrupts its own session only; the server decides when its workers end.
    os.setsid()
    # Where Linux shares processors among sessions first (sched(7), autogroups), niceness counts within a session
    # only, and a database would wait for a worker as for its equal.
    with suppress(OSError):
        AUTOGROUP.write_text(str(niceness))
    serve, work = pickle.loads(called)
    threading.Thread(target=end_with_parent, daemon=True).start()
    converse(serve, pipe, work)


def converse(serve: Callable[[Connection, Work], None], pipe: Connection, work: Work) -> None:
    """Call `serve(pipe, work)`, tell what it raises, and close the pipe. Says nothing where nobody listens."""
    # Where the server has died or let go of the pipe, a traceback on standard error would be no use to anybody.
    with pipe, suppress(BrokenPipeError, ConnectionResetError):
        try:
            serve(pipe, work)
        except Exception as error:
            pipe.send(failure(error))


@dataclass(frozen=True)
class Failed:
    """Told last where a worker cannot go on. `problem` may count records and is for operators, `kind` for logs."""

    kind: str
    problem: str


def failure(error: Exception) -> Failed:
    """Return what may be told of an error in a worker."""
    if isinstance(error, EquipoiseError):
        return Failed(type(error).__name__, error.message)
    if isinstance(error, MemoryError):
        return Failed("MemoryError", "out of memory")
    # Its own text may hold what was asked or what the table holds: only the place may be told.
    place = traceback.extract_tb(error.__traceback__)[-1]
    kind = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
    return Failed(kind, f"something unexpected happened: {kind}")


def end_with_parent() -> None:
    """A killed server must leave no worker behind that goes on using memory and processors."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
