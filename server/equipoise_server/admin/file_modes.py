"""Checks the modes of a state directory's files: only its owner may open them, whatever the umask was."""

from __future__ import annotations

import stat
from pathlib import Path

from equipoise.errors import InvalidArgument
from equipoise_server.ledger.rollback_guard import GUARD_FILE

PRIVATE_DIRECTORIES = ("", "ca", "keys")
GUARD_FILES = (GUARD_FILE, f"{GUARD_FILE}.digests")


def check_modes(state: Path, database: Path | None) -> None:
    """Refuse a state directory that others may enter or change.

    Whoever writes the store can raise budgets, whoever writes the guard can hide that an older store was restored,
    and whoever may exchange a file in its directory needs no access to the file itself.

    Args:
        state: The state directory.
        database: The file of an SQLite store, which may lie elsewhere; None for another store.

    Raises:
        InvalidArgument: Names the file or directory, and the command that gives it the right mode.
    """
    for name in PRIVATE_DIRECTORIES:
        _check(state / name, stat.S_IRWXG | stat.S_IRWXO, "enter it", "700")
    files = [state / name for name in GUARD_FILES]
    if database is not None:
        files += [database, database.with_name(f"{database.name}-wal")]
        _check(database.parent, stat.S_IWGRP | stat.S_IWOTH, "exchange the store in it", "go-w")
    for file in files:
        _check(file, stat.S_IRWXG | stat.S_IRWXO, "open it", "600")


def _check(path: Path, forbidden: int, what: str, mode: str) -> None:
    try:
        found = path.stat().st_mode
    except FileNotFoundError:
        return  # what has to be there is missed by whoever reads it
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be looked at: {error.strerror}") from None
    if found & forbidden:
        problem = f"others may {what} (mode {stat.S_IMODE(found):o}); run: chmod {mode} {path}"
        raise InvalidArgument(str(path), problem)
