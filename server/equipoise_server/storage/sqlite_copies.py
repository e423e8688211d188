"""Copies of an SQLite store: one file, made by SQLite's own backup while a server writes."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy.engine import URL

from equipoise.errors import InvalidArgument, Unavailable
from equipoise_server.storage import sqlite
from equipoise_server.storage.durable import sync_directory, sync_file

LOADED = "-restoring"  # what the name of a copy ends in that lies beside the store
REPLACED = "replaced."  # what the directory of a store that was replaced begins with


def write(url: URL, path: Path) -> None:
    """Write the store's state at one moment to the empty file `path`. Raises `InvalidArgument`, `Unavailable`."""
    sqlite.check_there(url)
    # "rw", as reading in WAL mode writes to the file of the readers' marks; a missing file is not made.
    source = f"{sqlite.path_of(url).as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(source, uri=True)) as store, closing(sqlite3.connect(path)) as copy:
            store.backup(copy)
    except sqlite3.Error as error:
        raise Unavailable(f"the store cannot be copied: {error}") from None


@contextmanager
def beside(url: URL, path: Path) -> Iterator[URL]:
    """Lay the copy `path` beside the store, and remove it at the end unless `exchange` has taken it.

    Raises:
        InvalidArgument: a server uses the store, or the file cannot be written; the field is `store`.
    """
    store = sqlite.path_of(url)
    loaded = store.with_name(f"{store.name}{LOADED}")
    with sqlite.hold(url):
        _remove(loaded)
        try:
            shutil.copyfile(path, loaded)
            loaded.chmod(0o600)
            yield url.set(database=str(loaded))
        except OSError as error:
            raise InvalidArgument("store", f"{loaded} cannot be written: {error.strerror}") from None
        finally:
            _remove(loaded)


def exchange(url: URL, loaded: URL) -> str:
    """Put a copy that lies beside the store in its place; return the directory that keeps the store before, if any.

    A crash in between leaves no store at all, which no server takes for a new one as long as there is a guard.
    """
    store, copy = sqlite.path_of(url), sqlite.path_of(loaded)
    sync_file(copy)
    # The newer journal must not meet the older file.
    files = [store.with_name(f"{store.name}{suffix}") for suffix in ("-wal", "-shm", "")]
    before, kept = [file for file in files if file.exists()], ""
    if before:
        kept = tempfile.mkdtemp(prefix=REPLACED, dir=store.parent)
        for file in before:
            file.rename(Path(kept) / file.name)
    copy.rename(store)
    sync_directory(store.parent)
    return kept


def _remove(copy: Path) -> None:
    for suffix in ("-wal", "-shm", "-journal", ""):
        copy.with_name(f"{copy.name}{suffix}").unlink(missing_ok=True)
