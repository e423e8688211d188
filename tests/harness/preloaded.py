"""Programs that start at once: forked from a process that has imported the server's program once.

    with start("import sys; print(sys.argv[1])", "hello", stdout=PIPE, stderr=log) as program:
        line = program.stdout.readline()

Loading the server takes seconds of a processor, and loading its workers' program takes as many. Where a test is
about a server and not about its start, the server comes from here: a process of its own, with its own environment,
working directory and streams, but forked. The process that forks has no threads, and ends with the tests. The
process from which a server forks its workers is forked, too, before the server has threads.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing import forkserver, util
from multiprocessing.connection import wait
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from equipoise_server.workers.process import PROGRAM

LOADED = ("equipoise_server.app", *PROGRAM)
REQUEST_BYTES = 1 << 20
STREAMS = 4  # standard input, output and error, and where it is told how the program ends
MAIN = "from harness.preloaded import fork_programs; call = fork_programs(); call()"


class Program:
    """A forked process, as far as it is like a `subprocess.Popen[str]`."""

    def __init__(self, status: IO[bytes], stdin: IO[str] | None, stdout: IO[str] | None) -> None:
        self._status = status
        self._lock = threading.Lock()
        self.stdin, self.stdout = stdin, stdout
        self.returncode: int | None = None
        self.pid = int(status.readline())

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in (self.stdin, self.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self.wait()
        self._status.close()

    def poll(self) -> int | None:
        """The exit code; None as long as it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code; that of a signal is negative."""
        if self.returncode is None and not wait([self._status.fileno()], timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        with self._lock:
            if self.returncode is None:
                self.returncode = int(self._status.readline())
            return self.returncode

    def send_signal(self, number: int) -> None:
        """Does nothing where it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def start(
    source: str,
    *arguments: object,
    stderr: IO[Any],
    stdin: int | None = None,
    stdout: int | None = None,
    workers: bool = True,
) -> Program | subprocess.Popen[str]:
    """Start what `python -c` starts.

    Args:
        source: The program.
        arguments: Its `sys.argv[1:]`.
        stderr: A file.
        stdin: PIPE, or None for nothing to read.
        stdout: PIPE, or None for what the tests write to.
        workers: Whether it is a server, which will fork workers.

    Where libraries are to be loaded before it (LD_PRELOAD), it is not forked.
    """
    texts = [str(argument) for argument in arguments]
    if "LD_PRELOAD" in os.environ:
        command = [sys.executable, "-c", source, *texts]
        return subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, text=True, env=_environment())
    read_end, status = os.pipe()
    given, inner = os.pipe() if stdin == subprocess.PIPE else (os.open(os.devnull, os.O_RDONLY), None)
    outer, written = os.pipe() if stdout == subprocess.PIPE else (None, os.dup(1))
    try:
        request = Request(source, texts, _environment(), str(Path.cwd()), workers)
        _forker().ask(request, (given, written, stderr.fileno(), status))
    finally:
        for descriptor in (given, written, status):
            os.close(descriptor)
    return Program(
        os.fdopen(read_end, "rb", buffering=0),
        None if inner is None else os.fdopen(inner, "w"),
        None if outer is None else os.fdopen(outer),
    )


@dataclass(frozen=True)
class Request:
    """What is asked of the process that forks."""

    source: str
    arguments: Sequence[str]
    environment: dict[str, str]
    directory: str
    workers: bool

    def call(self) -> None:
        """Be the program."""
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.directory)
        sys.argv = ["-c", *self.arguments]
        if self.workers:
            fork_workers()
        exec(self.source, {"__name__": "__main__"})


class Forker:
    """The process that forks, as the tests see it. It ends with them."""

    def __init__(self) -> None:
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-c", MAIN, str(other.fileno())],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                env=_environment(),
            )

    def ask(self, request: Request, streams: Sequence[int]) -> None:
        """Has a program started with these descriptors as its `STREAMS`."""
        with self._lock:
            socket.send_fds(self._socket, [pickle.dumps(request)], list(streams))


@cache
def _forker() -> Forker:
    """That of this process."""
    return Forker()


def _environment() -> dict[str, str]:
    tests = str(Path(__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])}


def fork_programs() -> Any:
    """Fork whatever is asked for, until the tests end. Returns in the forked process, with what it shall call."""
    for module in LOADED:
        importlib.import_module(module)
    asked = socket.socket(fileno=int(sys.argv[1]))
    while True:
        request, streams, _, _ = socket.recv_fds(asked, REQUEST_BYTES, STREAMS)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not request:
            return sys.exit
        if os.fork() == 0:
            asked.close()
            return _keep(pickle.loads(request), *streams)
        for descriptor in streams:
            os.close(descriptor)


def _keep(request: Request, stdin: int, stdout: int, stderr: int, status: int) -> Any:
    """Fork the program and tell of its end; returns in the program."""
    program = os.fork()
    if program:
        for descriptor in (stdin, stdout, stderr):
            os.close(descriptor)
        os.write(status, b"%d\n" % program)
        code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
        with suppress(BrokenPipeError):
            os.write(status, b"%d\n" % code)
        os._exit(0)
    os.close(status)
    for number, descriptor in enumerate((stdin, stdout, stderr)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    return request.call


def fork_workers() -> None:
    """Fork the process from which a server will fork its workers. To be called before this one has threads."""
    begun = util.spawnv_passfds
    util.spawnv_passfds = _fork_python  # type: ignore[assignment]
    try:
        forkserver.ensure_running()
    finally:
        util.spawnv_passfds = begun


def _fork_python(_: object, command: Sequence[str], kept: Sequence[int]) -> int:
    """What `python -c` would do, in a fork: nothing is inherited but the standard streams and what is `kept`."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        lowest = 3
        for descriptor in [*sorted(kept), os.sysconf("SC_OPEN_MAX")]:
            os.closerange(lowest, descriptor)
            lowest = descriptor + 1
        exec(command[-1], {"__name__": "__main__"})
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
