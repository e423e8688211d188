"""Syncs files and their names, so that both survive a power loss: syncing a file does not sync its name."""

from __future__ import annotations

import os
from pathlib import Path


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable after files were made, renamed or removed. Raises `OSError`."""
    _sync(directory, os.O_RDONLY | os.O_DIRECTORY)


def sync_file(path: Path) -> None:
    """Make a file's content durable. Raises `OSError`."""
    _sync(path, os.O_RDONLY | os.O_NOFOLLOW)


def sync_tree(directory: Path) -> None:
    """Make a directory and everything below it durable. Raises `OSError`."""
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
