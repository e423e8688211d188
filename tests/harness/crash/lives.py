"""The process in which a server lives, dies and lives again: everything is imported once, each life is a fork.

    python -c "from crash.lives import main; main()" STATE POINTS [SEED]

A line on standard input begins a life: after how many seconds it is killed, or
`null`. A life also ends at each of the crash points that the file POINTS names, one a line, once at each; and with
the tests, however they end. How it ended is told on standard output. The composition root is given a hook, and SEED
(hexadecimal) for every round's seed; no option of a server does that.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path

from harness.preloaded import fork_workers

from equipoise_server.app import serve
from equipoise_server.storage.crash_points import CrashPoint
from equipoise_server.transparency.seed_encryption import SeedSource, system_seeds


def main() -> None:
    """One life after the other, until standard input ends."""
    state, points = Path(sys.argv[1]), Path(sys.argv[2])
    seed = bytes.fromhex(sys.argv[3]) if sys.argv[3:] else None
    for line in sys.stdin:
        if (child := os.fork()) == 0:
            live(state, points, json.loads(line), system_seeds if seed is None else lambda: seed)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def live(state: Path, points: Path, seconds: float | None, seeds: SeedSource) -> None:
    """A server, as it is, until it is killed or told to stop."""
    os.dup2(2, 1)  # what it prints is no word of how it ended
    fork_workers()
    threading.Thread(target=_stop_with_tests, daemon=True).start()
    if seconds is not None:
        threading.Thread(target=_die_after, args=(seconds,), daemon=True).start()
    dying = threading.Lock()

    def die(point: CrashPoint) -> None:
        with dying:
            left = points.read_text().splitlines()
            if point.value not in left:
                return
            left.remove(point.value)
            # Every point is died at once: the list is shortened, and synced, before the kill.
            with points.open("w") as file:
                file.write("".join(f"{each}\n" for each in left))
                file.flush()
                os.fsync(file.fileno())
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(serve(state, seeds=seeds, crash_hook=die))


def _die_after(seconds: float) -> None:
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


def _stop_with_tests() -> None:
    """Nothing is read: only that nobody can write any more is waited for."""
    ended = select.poll()
    ended.register(sys.stdin, 0)
    ended.poll()
    os.kill(os.getpid(), signal.SIGTERM)
