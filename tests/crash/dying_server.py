"""A real server that kills itself at chosen points, is started again each time, and clients that ask again.

The composition root is given a hook; no option of a server does that.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from equipoise.errors import Unavailable
from equipoise_server.state import create_state

SECONDS = 240
SEED = bytes(range(32))

# Every point is died at once: the list in the file is shortened, and synced, before the kill.
SCRIPT = """
import asyncio, os, pathlib, signal, sys, threading
from equipoise_server.app import serve

state, points = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
dying = threading.Lock()

def die(point):
    with dying:
        left = points.read_text().splitlines()
        if point.value in left:
            left.remove(point.value)
            with points.open("w") as file:
                file.write("".join(each + chr(10) for each in left))
                file.flush()
                os.fsync(file.fileno())
            os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    asyncio.run(serve(state, seeds=lambda: bytes(range(32)), crash_hook=die))
"""

Answer = TypeVar("Answer")


@dataclass
class DyingServer:
    """A server on `state` that is started again whenever it has died; `deaths` counts."""

    state: Path
    points: Path
    deaths: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _process: subprocess.Popen[bytes] | None = None

    def keep_running(self) -> None:
        """Start it, and again after every death, until `stop`."""
        while not self._stopping.is_set():
            with (self.state / "server.log").open("ab") as log:
                command = [sys.executable, "-c", SCRIPT, str(self.state), str(self.points)]
                self._process = subprocess.Popen(command, stdout=log, stderr=log)
            self._process.wait()
            self.deaths += not self._stopping.is_set()

    def stop(self) -> None:
        """End it, as an operator would."""
        self._stopping.set()
        assert self._process is not None
        self._process.terminate()

    def left(self) -> list[str]:
        """The points that have not been reached."""
        return self.points.read_text().splitlines()


@contextmanager
def dying_server(directory: Path, points: list[str]) -> Iterator[DyingServer]:
    """A fresh deployment whose server dies once at each of the points."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    state = directory / "state"
    create_state(state, listen=f"127.0.0.1:{port}", release_grid_seconds=1)
    (directory / "points").write_text("".join(f"{point}\n" for point in points))
    server = DyingServer(state, directory / "points")
    keeper = threading.Thread(target=server.keep_running)
    keeper.start()
    try:
        yield server
    finally:
        server.stop()
        keeper.join()


def persisting(ask: Callable[[], Answer]) -> Answer:
    """What a call answers in the end; it is made again for as long as the server cannot be reached."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            return ask()
        except Unavailable:
            assert time.monotonic() < end, "the server did not come back"
