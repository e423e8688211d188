"""Files and names that must survive a power loss: a file's sync says nothing of the name that leads to it."""

from __future__ import annotations

import os
from pathlib import Path


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable: those made, renamed and removed. Raises `OSError`."""
    _sync(directory, os.O_RDONLY | os.O_DIRECTORY)


def sync_file(path: Path) -> None:
    """Make what a file says durable. Raises `OSError`."""
    _sync(path, os.O_RDONLY | os.O_NOFOLLOW)


def sync_tree(directory: Path) -> None:
    """Make a directory durable with all that is below it. Raises `OSError`."""
    for path, _, names in os.walk(directory, topdown=False):
        for name in names:
            sync_file(Path(path) / name)
        sync_directory(Path(path))


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
