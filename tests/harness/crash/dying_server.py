"""A real server that dies and is started again, and clients that ask again."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from harness.preloaded import Program, start

from equipoise.errors import TooFast, Unavailable
from equipoise_server.admin.new_state import create_state

SECONDS = 240
KILLED = -9
SCRIPT = "from harness.crash.lives import main; main()"

Answer = TypeVar("Answer")


class Closing(Protocol):
    """What both kinds of clients can."""

    def close(self) -> None: ...


Caller = TypeVar("Caller", bound=Closing)


class Server(Protocol):
    """What clients know of a server that comes and goes; `faults` are ends that nobody had brought about."""

    state: Path
    faults: list[int]

    def patient(self, since: float) -> bool: ...
    def log(self) -> str: ...


@dataclass
class DyingServer:
    """A server on `state`, life by life. `faults`: how lives ended that nobody had ended.

    `born`: when the present life began. Patience is counted from then, since on a busy machine what is waited for
    may need a longer life than it was given so far.
    """

    state: Path
    points: Path
    process: Program | subprocess.Popen[str]
    deaths: int = 0
    faults: list[int] = field(default_factory=list)
    stopping: bool = False
    born: float = field(default_factory=time.monotonic)
    _asking: threading.Lock = field(default_factory=threading.Lock)

    def live(self, seconds: float | None = None) -> bool:
        """One life, of so many seconds at most; whether it ended by a kill. None begins after `stop`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with self._asking:  # else `stop` closes what is written to
            if self.stopping:
                return False
            self.process.stdin.write(json.dumps(seconds) + "\n")
            self.process.stdin.flush()
        self.born = time.monotonic()
        told = self.process.stdout.readline()
        if not told:
            ended = self.process.wait(SECONDS)
            raise AssertionError(f"what all lives are forked from has ended with code {ended}: {self.log()}")
        code = int(told)
        self.deaths += code == KILLED
        if code != KILLED and not self.stopping:
            self.faults.append(code)
        return code == KILLED

    def keep_alive(self) -> None:
        """A life after every kill, until `stop`."""
        while self.live():
            pass

    def stop(self) -> None:
        """End it, as an operator would, and every life to come."""
        assert self.process.stdin is not None
        with self._asking:
            self.stopping = True
            self.process.stdin.close()

    def patient(self, since: float) -> bool:
        """Whether what has been waited for since then may still come in this life."""
        return time.monotonic() < max(since, self.born) + SECONDS

    def left(self) -> list[str]:
        """The points that have not been reached."""
        return self.points.read_text().splitlines()

    def log(self) -> str:
        """The last that the server has logged."""
        return (self.state / "server.log").read_text()[-4000:]


@dataclass
class Persisting(Generic[Caller]):
    """A client that asks again for as long as the server cannot be reached, or is busy. One thread's own."""

    server: Server
    connect: Callable[[], Caller]
    _caller: Caller | None = None

    def ask(self, question: Callable[[Caller], Answer]) -> Answer:
        """What a call answers in the end."""
        start = time.monotonic()
        while True:
            if self._caller is None:
                self._caller = self.connect()
            try:
                return question(self._caller)
            except (Unavailable, TooFast):  # the latter as one analyst's calls come from several clients
                assert not self.server.faults, self.server.log()
                assert self.server.patient(start), "the server did not come back"
                self.close()

    def close(self) -> None:
        """End the connection; the next question makes another."""
        if self._caller is not None:
            self._caller.close()
        self._caller = None


@contextmanager
def dying_server(
    directory: Path, store_url: str, points: Iterable[str] = (), seed: bytes = b""
) -> Iterator[DyingServer]:
    """A fresh deployment whose server dies once at each of the points, and otherwise lives as it is told.

    Every round has the `seed`; without one, a seed of its own. An SQLite store lies in the state directory.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    state, kept = directory / "state", directory / "points"
    store = "sqlite:///equipoise.db" if store_url.startswith("sqlite") else store_url
    create_state(state, listen=f"127.0.0.1:{port}", store=store, release_grid_seconds=1)
    kept.write_text("".join(f"{point}\n" for point in points))
    with (
        (state / "server.log").open("ab") as log,
        start(
            SCRIPT,
            *(state, kept),
            *filter(None, [seed.hex()]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            workers=False,  # each life has its own
        ) as process,
    ):
        server = DyingServer(state, kept, process)
        try:
            yield server
        finally:
            server.stop()
            process.wait(SECONDS)


@contextmanager
def kept_alive(server: DyingServer) -> Iterator[None]:
    """The server lives, again after every death, while the block runs."""
    keeper = threading.Thread(target=server.keep_alive)
    keeper.start()
    try:
        yield
    finally:
        server.stop()
        keeper.join()
    assert server.faults == [], server.log()
