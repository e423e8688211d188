"""SQLite as the store: one file on one machine, used by one server.

In WAL mode with `synchronous=FULL`: when a transaction has been committed, it has been synced. One connection
writes, in transactions that hold the write lock from their beginning; readers see the last commit.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from equipoise.errors import InvalidArgument, Unavailable
from equipoise_server.storage.file_systems import SHARED, file_system

READERS = 8  # connections that read at the same time
BUSY_SECONDS = 15  # how long to wait for another process's write lock
# What a connection keeps of the file for itself. Read are mostly results, each once, and the operating system keeps
# the file; SQLite's own 2 MiB for each of the readers fill up over a quarter of an hour, and look like a leak.
CACHE_KIBIBYTES = 256
CHECKPOINT_SECONDS = 0.01  # after which another's checkpoint, a few pages and two syncs, may have ended


def prepare(url: URL) -> None:
    """Make the file readable by its owner only before anything is in it; SQLite's own files follow it.

    Raises `InvalidArgument("store", ...)` where it cannot be made, and on a network file system: there, locks
    and memory shared between processes do not hold what SQLite relies on.
    """
    path = _path(url)
    kind = file_system(path)
    if kind in SHARED:
        raise InvalidArgument(
            "store", f"lies on a network file system ({kind}), where SQLite is not safe; use PostgreSQL"
        )
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise InvalidArgument("store", f"cannot be opened: {error.strerror}") from None


def check_there(url: URL) -> None:
    """Raises `InvalidArgument("store", ...)` where there is no file: connecting would make one."""
    if not _path(url).is_file():
        raise InvalidArgument("store", f"{_path(url)} is not there")


def engine(url: URL, writes: bool) -> Engine:
    """Return the one connection that writes, or those that read."""
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
        # The driver's own guesses at where transactions begin are switched off; `begin` below says it.
        connection.isolation_level = None
        _pragma(connection, "foreign_keys", "ON", 1)
        _pragma(connection, "journal_mode", "WAL", "wal")
        _pragma(connection, "synchronous", "FULL", 2)
        _pragma(connection, "cache_size", f"-{CACHE_KIBIBYTES}", -CACHE_KIBIBYTES)
        if writes:
            # What is erased, such as the seed of a round that has ended, is overwritten, not only forgotten.
            _pragma(connection, "secure_delete", "ON", 1)
            _settle(connection)
        else:
            _pragma(connection, "query_only", "ON", 1)

    @event.listens_for(made, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return made


def migrating(_: URL, writer: Engine) -> AbstractContextManager[Connection]:
    """Return the transaction in which the store is migrated: one that holds the write lock, as any that writes."""
    return writer.begin()


@contextmanager
def hold(url: URL) -> Iterator[None]:
    """Holds the store for one server, by a lock beside its file. The operating system frees it after a crash.

    Beside and not on the file: closing a second descriptor of it would drop SQLite's own locks.
    """
    path = _path(url)
    if path.exists() and path.stat().st_nlink > 1:
        # Under its other name it has another lock, so that a second server could spend what this one spends.
        raise InvalidArgument("store", f"{path} has a second name (a hard link); a store must have one name only")
    try:
        descriptor = os.open(path.with_name(f"{path.name}-server"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InvalidArgument("store", f"cannot be opened: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidArgument("store", f"{path} is in use by another server") from None
        yield
    finally:
        os.close(descriptor)


def _settle(connection: DBAPIConnection) -> None:
    """Make durable what is read, before anything is done upon it.

    A commit that a kill or an error of the disk cut off between its writing and its sync is there when the file is
    opened next, and would be lost by a power loss, though a request that was repeated had got its answer from it. A
    checkpoint writes it to the database file anew, and syncs that.

    SQLite itself waits until nobody writes, but two checkpoints exclude each other and that it does not wait for
    (sqlite3_wal_checkpoint_v2), though every commit may begin one.
    """
    end = time.monotonic() + BUSY_SECONDS
    while not _checkpoint(connection):
        if time.monotonic() > end:
            raise Unavailable("the store is busy")
        time.sleep(CHECKPOINT_SECONDS)


def _checkpoint(connection: DBAPIConnection) -> bool:
    """Return whether all that is committed is in the database file now, and synced."""
    cursor = connection.cursor()
    try:
        cursor.execute("PRAGMA wal_checkpoint(FULL)")
        row = cursor.fetchone()
    finally:
        cursor.close()
    return row is not None and row[0] == 0


def _path(url: URL) -> Path:
    """Return the file itself, so that two names for one store are one."""
    return Path(url.database or "").resolve()


def _pragma(connection: DBAPIConnection, name: str, value: str, expected: object) -> None:
    """Set a pragma and read it back: SQLite ignores what it cannot do without a word."""
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA {name} = {value}")
        cursor.execute(f"PRAGMA {name}")
        row = cursor.fetchone()
    finally:
        cursor.close()
    if row is None or row[0] != expected:
        raise Unavailable(f"the store does not keep {name} = {value}; its file system may not allow it")
