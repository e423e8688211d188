"""Starts worker processes, forked from a process that has loaded the workers' program, and talks to them.

    process = start(serve_job, job, name, BEHIND_CALLS)
    message = process.receive()

Loading takes seconds of processor time. The server cannot fork itself, because it has threads, keys and connections
to the store. So multiprocessing starts one further process: a new interpreter, which gets only the server's
environment and standard error, loads the program, and forks a worker whenever the server asks. That process runs
nothing else, and ends when the server and all workers have ended.

A worker and its server exchange values over one pipe; the kind of worker determines the types. A worker that fails
sends `Failed` as its last value. A worker that is waited for and does not work is killed (`watchdog`).
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, TypeVar

from equipoise.errors import EquipoiseError, Unavailable
from equipoise_server.workers.watchdog import IDLE_SECONDS, watch

BEHIND_CALLS = 10  # a run takes a tenth of a processor that calls need, and all idle time
AMONG_CALLS = 0
MAX_NICENESS = 19  # the largest niceness of Linux
AUTOGROUP = Path("/proc/self/autogroup")
PROGRAM = [
    "equipoise_server.workers.round_worker",
    "equipoise_server.workers.session_worker",
    "equipoise_server.workers.table_worker",
]

NO_WORKER = "no worker can be started now"

Work = TypeVar("Work")

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PROGRAM)


def load_program() -> None:
    """Start the process that loads the workers' program, unless it runs already. Does not wait for the loading."""
    forkserver.ensure_running()


class WorkerProcess:
    """A worker process, as its server sees it. Safe to use from threads, except `pipe`, the server's end.

    `owes` says whether the server waits for the worker; `messages`, how many it has sent; `stalled`, whether it was
    killed because it did not work.
    """

    def __init__(self, process: ForkServerProcess, pipe: Connection, idle_seconds: float = IDLE_SECONDS) -> None:
        self.pipe = pipe
        self.owes = self.stalled = False
        self.messages = 0
        self._process = process
        # multiprocessing reads the exit code from a pipe: if two threads read at once, one would miss the code.
        self._lock = threading.Lock()
        # The server is not the worker's parent. So the worker's id may belong to another process as soon as the
        # worker has ended, and nobody tells of the worker's end after its parent has ended. A Linux process
        # descriptor has neither problem.
        self._descriptor: int | None = None
        with suppress(AttributeError, ProcessLookupError):
            self._descriptor = os.pidfd_open(process.pid or 0)
            weakref.finalize(self, os.close, self._descriptor)
            watch(self, self._descriptor, idle_seconds)

    @property
    def pid(self) -> int | None:
        """The process id."""
        return self._process.pid

    def send(self, value: object) -> None:
        """Send the worker a value, which it has to take. Raises `OSError` if it has ended or is stalled."""
        with self._waiting():
            self.pipe.send(value)

    def receive(self) -> Any:
        """Return the worker's next value. Raises `EOFError` or `OSError` if it has ended or is stalled."""
        with self._waiting():
            value = self.pipe.recv()
        self.messages += 1
        return value

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        self.owes = True
        try:
            yield
        finally:
            self.owes = False

    def is_alive(self) -> bool:
        """Return whether the process has not ended."""
        if self._descriptor is not None:
            return not wait([self._descriptor], timeout=0)
        with self._lock:
            return self._process.is_alive()

    def kill(self) -> None:
        """Kill the process, if it has not ended."""
        if self._descriptor is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        elif self.is_alive():
            self._process.kill()

    def end(self) -> None:
        """Kill the process, and wait for its end."""
        self.kill()
        self.join()

    def join(self) -> int | None:
        """Wait for the end of the process.

        Returns:
            The exit code; negative after a signal.
        """
        wait([self._process.sentinel if self._descriptor is None else self._descriptor])
        with self._lock:
            self._process.join()
            return self._process.exitcode


def start(
    serve: Callable[[Connection, Work], None],
    work: Work,
    name: str,
    behind: int,
    idle_seconds: float = IDLE_SECONDS,
) -> WorkerProcess:
    """Start a process that calls `serve(pipe, work)` with its end of a new pipe.

    Args:
        serve: A function of a module. Its errors are sent as `Failed`.
        work: The function's second argument, which is pickled.
        name: The process's name, for operators.
        behind: By how much the niceness of the process exceeds the server's.
        idle_seconds: How long the process may be waited for without using processor time.

    Raises:
        Unavailable: No process can be started now.
    """
    niceness = min(MAX_NICENESS, os.getpriority(os.PRIO_PROCESS, 0) + behind)
    called = pickle.dumps((serve, work))
    pipe, other = multiprocessing.Pipe()
    # Only the worker may hold the other end afterwards, so that the pipe closes when the worker dies.
    with other:
        process = _context.Process(target=_begin, args=(other, called, niceness), name=name, daemon=True)
        try:
            process.start()
        except (EOFError, OSError):  # the process that forks is ending; the next start begins another one
            pipe.close()
            raise Unavailable(NO_WORKER) from None
    return WorkerProcess(process, pipe, idle_seconds)


def _begin(pipe: Connection, called: bytes, niceness: int) -> None:
    # Set the niceness before the first thread starts: on Linux each thread has its own, and new threads inherit it.
    os.setpriority(os.PRIO_PROCESS, 0, niceness)
    # A new session keeps a terminal's interrupts away: the server decides when its workers end.
    os.setsid()
    # Where Linux first divides processors among sessions (sched(7), autogroups), niceness counts only within a
    # session, and a database would wait for a worker as for its equal. So set the session's niceness, too.
    with suppress(OSError):
        AUTOGROUP.write_text(str(niceness))
    serve, work = pickle.loads(called)
    threading.Thread(target=end_with_parent, daemon=True).start()
    converse(serve, pipe, work)


def converse(serve: Callable[[Connection, Work], None], pipe: Connection, work: Work) -> None:
    """Call `serve(pipe, work)`, send its error as `Failed`, and close the pipe. Stays silent if nobody listens."""
    # If the server has died or closed the pipe, a traceback on standard error would be of no use.
    with pipe, suppress(BrokenPipeError, ConnectionResetError):
        try:
            serve(pipe, work)
        except Exception as error:
            pipe.send(failure(error))


@dataclass(frozen=True)
class Failed:
    """The last message of a failed worker. `problem` is for operators and may count records; `kind` is for logs."""

    kind: str
    problem: str


def failure(error: Exception) -> Failed:
    """Return the parts of a worker's error that the server may know."""
    if isinstance(error, EquipoiseError):
        return Failed(type(error).__name__, error.message)
    if isinstance(error, MemoryError):
        return Failed("MemoryError", "out of memory")
    # The error's text may contain statements or private data: only its type and place may leave the worker.
    place = traceback.extract_tb(error.__traceback__)[-1]
    kind = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
    return Failed(kind, f"something unexpected happened: {kind}")


def end_with_parent() -> None:
    """End this process when the server's process has ended, so that a killed server leaves no worker behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
