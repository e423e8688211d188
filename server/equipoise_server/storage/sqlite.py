"""SQLite as the store: one file on one machine, used by one server.

The file is in WAL mode with `synchronous=FULL`, so a committed transaction has been synced. One connection writes,
in transactions that hold the write lock from their beginning. Readers see the last commit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from equipoise.errors import InvalidArgument, Unavailable
from equipoise_server.storage.file_locks import database_locked, locked
from equipoise_server.storage.file_systems import SHARED, file_system, mounted_alone

READERS = 8  # connections that read at the same time
BUSY_SECONDS = 15  # how long to wait for another process's write lock
# The page cache of a connection. Most reads are of results, each read once; the operating system caches the file.
# SQLite's default of 2 MiB for each reader fills up over a quarter of an hour, and looks like a memory leak.
CACHE_KIBIBYTES = 256
CHECKPOINT_SECONDS = 0.01  # between two attempts; another checkpoint takes a few pages and two syncs


def prepare(url: URL) -> None:
    """Create the file, readable by its owner alone, before it has any content. SQLite's other files get its mode.

    Raises:
        InvalidArgument: the file cannot be created, or lies on a network file system, where file locks and shared
            memory do not work as SQLite requires, or is mounted alone; the field is `store`.
    """
    path = path_of(url)
    kind = file_system(path)
    if kind in SHARED:
        raise InvalidArgument(
            "store", f"lies on a network file system ({kind}), where SQLite is not safe; use PostgreSQL"
        )
    if mounted_alone(path):
        # SQLite keeps recent commits in a second file beside it, which would not be there under its other name.
        raise InvalidArgument("store", f"{path} is mounted alone; mount its directory")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise InvalidArgument("store", f"cannot be opened: {error.strerror}") from None


def check_there(url: URL) -> None:
    """Raise `InvalidArgument("store", ...)` if there is no file: connecting would create one."""
    if not path_of(url).is_file():
        raise InvalidArgument("store", f"{path_of(url)} is not there")


def engine(url: URL, writes: bool) -> Engine:
    """Return the engine of the one writing connection, or of the reading connections."""
    made = create_engine(
        url,
        hide_parameters=True,  # errors, which may be logged, quote no workload
        poolclass=QueuePool,
        pool_size=1 if writes else READERS,
        max_overflow=0,
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
    )

    @event.listens_for(made, "connect")
    def connected(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        # Switch off the driver's guesses at where transactions begin; `begin` below begins them.
        connection.isolation_level = None
        _pragma(connection, "foreign_keys", "ON", 1)
        _pragma(connection, "journal_mode", "WAL", "wal")
        _pragma(connection, "synchronous", "FULL", 2)
        _pragma(connection, "cache_size", f"-{CACHE_KIBIBYTES}", -CACHE_KIBIBYTES)
        if writes:
            # Overwrite erased content, such as the seed of a round that has ended.
            _pragma(connection, "secure_delete", "ON", 1)
            _settle(connection)
        else:
            _pragma(connection, "query_only", "ON", 1)

    @event.listens_for(made, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return made


def migrating(_: URL, writer: Engine) -> AbstractContextManager[Connection]:
    """Return the transaction in which the store is migrated, which holds the write lock."""
    return writer.begin()


@contextmanager
def hold(url: URL) -> Iterator[None]:
    """Hold the store for one server, by locking a file beside it and the store itself.

    The file beside it is there before the store is, and while a restore exchanges the store. The store's own lock
    also holds where that file was removed, and where the store has been given another name or place.

    Raises:
        InvalidArgument: another server holds the store, or a file cannot be used; the field is `store`.
    """
    path = path_of(url)
    if path.exists() and path.stat().st_nlink > 1:
        # SQLite keeps recent commits in a second file beside it, which would not be there under its other name.
        raise InvalidArgument("store", f"{path} has a second name (a hard link); a store must have one name only")
    with ExitStack() as locks:
        try:
            locks.enter_context(locked(path.with_name(f"{path.name}-server")))
            locks.enter_context(database_locked(path))
        except BlockingIOError:
            raise InvalidArgument("store", f"{path} is in use by another server") from None
        except OSError as error:
            raise InvalidArgument("store", f"cannot be opened: {error.strerror}") from None
        yield


def _settle(connection: DBAPIConnection) -> None:
    """Make the content of the store durable before anything depends on it.

    A crash or a disk error may interrupt a commit between its write and its sync. The next opening of the file
    finds the commit, and a repeated request gets its answer from it, but a power loss could still remove it. A
    checkpoint writes the commit to the database file and syncs the file.

    SQLite waits for writers to end, but not for another checkpoint (sqlite3_wal_checkpoint_v2), which every commit
    may begin. So the checkpoint is tried again. Raises `Unavailable` after 15 seconds.
    """
    end = time.monotonic() + BUSY_SECONDS
    while not _checkpoint(connection):
        if time.monotonic() > end:
            raise Unavailable("the store is busy")
        time.sleep(CHECKPOINT_SECONDS)


def _checkpoint(connection: DBAPIConnection) -> bool:
    """Run a checkpoint, and return whether all commits are in the database file and synced now."""
    cursor = connection.cursor()
    try:
        cursor.execute("PRAGMA wal_checkpoint(FULL)")
        row = cursor.fetchone()
    finally:
        cursor.close()
    return row is not None and row[0] == 0


def path_of(url: URL) -> Path:
    """Return the file's path without links, so that one store has one name."""
    return Path(url.database or "").resolve()


def _pragma(connection: DBAPIConnection, name: str, value: str, expected: object) -> None:
    """Set a pragma and read it back: SQLite silently ignores what it cannot do."""
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA {name} = {value}")
        cursor.execute(f"PRAGMA {name}")
        row = cursor.fetchone()
    finally:
        cursor.close()
    if row is None or row[0] != expected:
        raise Unavailable(f"the store does not keep {name} = {value}; its file system may not allow it")
