"""Locks of whole files, which the operating system frees when the process ends, however it ends.

These are the locks of flock(2): of an open file, and so of the file itself and not of its name. On Linux they have
nothing to do with the locks of fcntl(2), which SQLite takes on its file. But when a process closes any descriptor
of a file, it loses all of its fcntl locks on that file. So a descriptor of a file of SQLite's is never closed here.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_idle: defaultdict[tuple[int, int], list[int]] = defaultdict(list)  # of a file: unlocked descriptors, for later
_opening = threading.Lock()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a file that has no content while the context is open; it is made if need be, and stays.

    Raises `BlockingIOError` if it is locked, and another `OSError` if it cannot be used.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def database_locked(path: Path) -> Iterator[None]:
    """Lock a file of SQLite's while the context is open, under whatever name or in whatever place it is then.

    SQLite's own locks on it stay as they are. A file that is not there is not locked, nor is any on other systems
    than Linux, where the two kinds of locks exclude each other.

    Raises `BlockingIOError` if it is locked, and another `OSError` if it cannot be used.
    """
    if sys.platform != "linux" or not path.exists():
        yield
        return
    descriptor = _opened(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        with _opening:
            _idle[_identity(descriptor)].append(descriptor)


def _opened(path: Path) -> int:
    with _opening:
        known = path.stat()
        # While a descriptor is open, no other file gets this number.
        idle = _idle[known.st_dev, known.st_ino]
        return idle.pop() if idle else os.open(path, os.O_RDWR)


def _identity(descriptor: int) -> tuple[int, int]:
    known = os.fstat(descriptor)
    return known.st_dev, known.st_ino
