"""Copies of a store in one file each: made while servers run, and put in the place of a store that none uses."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType

from sqlalchemy.engine import URL

from equipoise_server.storage import postgresql, postgresql_copies, sqlite_copies
from equipoise_server.storage.durable import sync_file
from equipoise_server.storage.store import parsed_url


def write(url: str, path: Path) -> None:
    """Write the store's state at one moment to a new file of mode 0600, durably.

    Args:
        url: The store's.
        path: The file, which must not be there.

    Raises:
        InvalidArgument: there is no store, or PostgreSQL's programs are missing.
        Unavailable: the store cannot be copied now.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    _kind(parsed_url(url)).write(parsed_url(url), path)
    sync_file(path)


def beside(url: str, path: Path) -> AbstractContextManager[URL]:
    """Load a copy beside the store, which stays as it is; yield where. Removed at the end unless exchanged.

    Args:
        url: The store's.
        path: What `write` wrote of a store of the same kind.

    Raises:
        InvalidArgument: a server uses the store, or the copy cannot be laid beside it.
        Unavailable: the copy cannot be loaded.
    """
    found: AbstractContextManager[URL] = _kind(parsed_url(url)).beside(parsed_url(url), path)
    return found


def exchange(url: str, loaded: URL) -> str:
    """Put a copy that was loaded beside the store in its place; return where the store before is kept.

    Args:
        url: The store's.
        loaded: What `beside` yielded.

    Raises:
        InvalidArgument: a server uses the store; nothing is changed.
    """
    return str(_kind(parsed_url(url)).exchange(parsed_url(url), loaded))


def _kind(url: URL) -> ModuleType:
    return postgresql_copies if url.drivername == postgresql.DRIVER else sqlite_copies
