"""A machine's clock that a test sets, under a server that runs with `clock.c` preloaded.

with settable_clock(scratch) as clock:  # the environment of processes that are started in here
    clock.step(timedelta(days=365))     # servers and commands that were started in here see it at once
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from harness.faults.preloading import built

SOURCE = Path(__file__).with_name("clock.c")
SHIFT = struct.Struct("=q")


class SettableClock:
    """The clock of all processes that share this memory."""

    def __init__(self, shared: mmap.mmap) -> None:
        self._shared = shared

    def step(self, by: timedelta) -> None:
        """Set the clock, as an administrator or a wrong time server would."""
        (before,) = SHIFT.unpack(self._shared[: SHIFT.size])
        self._shared[: SHIFT.size] = SHIFT.pack(before + int(by.total_seconds()))


@contextmanager
def settable_clock(scratch: Path) -> Iterator[SettableClock]:
    """Processes that are started while the context lasts have this clock."""
    library, shift = built(SOURCE, scratch), scratch / "shift"
    shift.write_bytes(bytes(SHIFT.size))
    names = {"LD_PRELOAD": str(library), "CLOCK_SHIFT": str(shift)}
    assert not names.keys() & os.environ.keys()
    with shift.open("r+b") as file, mmap.mmap(file.fileno(), SHIFT.size) as shared:
        os.environ.update(names)
        try:
            yield SettableClock(shared)
        finally:
            for name in names:
                del os.environ[name]
