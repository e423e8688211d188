"""The demo's server: a process of its own, as `equipoise-server serve` starts it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from equipoise.errors import Unavailable

STOP_SECONDS = 20
_COMMAND = (sys.executable, "-c", "from equipoise_server.cli import main; main()")


def free_address() -> str:
    """Return an address on loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@contextmanager
def serving(state: Path, log: Path) -> Iterator[None]:
    """Serves `state` while the context lasts; the server's log goes to `log`.

    Raises `Unavailable` where the server does not come up.
    """
    arguments = [*_COMMAND, "serve", "--state", str(state), "--json"]
    with (
        log.open("wb") as file,
        subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=file) as process,
    ):
        try:
            assert process.stdout is not None
            # One line once calls are accepted, or the end of the output if the server gives up.
            if not _is_ready(process.stdout.readline()):
                raise Unavailable(f"the server did not start; its log is {log}")
            yield
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _is_ready(line: bytes) -> bool:
    try:
        return "port" in json.loads(line)
    except ValueError:
        return False
