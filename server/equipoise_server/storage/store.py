"""Connections to the store: who may write, and how durable a commit is.

SQLite in WAL mode with `synchronous=FULL`: when a transaction has been committed, it has been synced. One
connection writes, in transactions that hold the write lock from their beginning; readers see the last commit.

    store = open_store("sqlite:////var/lib/equipoise/equipoise.db")
    with store.write() as connection: ...   # commits at the end, rolls back on any exception
    with store.read() as connection: ...
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from equipoise.errors import DataLoss, EquipoiseError, InvalidArgument, Unavailable
from equipoise_server.storage.migrate import migrate

READERS = 8  # connections that read at the same time
BUSY_SECONDS = 15  # how long to wait for another process's write lock


class Store:
    """An open store. Safe to use from several threads."""

    def __init__(self, writer: Engine, reader: Engine) -> None:
        self._writer = writer
        self._reader = reader
        self._turn = threading.Lock()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that may write. Durable when the block has ended without an exception."""
        with self._turn, translated(), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one committed state and cannot write."""
        with translated(), self._reader.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close every connection."""
        self._writer.dispose()
        self._reader.dispose()


def open_store(url: str) -> Store:
    """Open the store at an SQLAlchemy URL, made and migrated if need be.

    Raises `InvalidArgument("store", ...)` for a URL that cannot be used, a file that is not ours, or a store
    written by a newer version; `Unavailable` where it cannot be opened; `DataLoss` where it is damaged.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InvalidArgument("store", "is not a database URL; write sqlite:///PATH") from None
    if parsed.get_backend_name() != "sqlite" or not parsed.database or parsed.database == ":memory:":
        raise InvalidArgument("store", "must be the URL of an SQLite file, sqlite:///PATH")
    _make_private(Path(parsed.database))
    store = Store(_engine(parsed, writes=True), _engine(parsed, writes=False))
    try:
        with store.write() as connection:
            migrate(connection)
    except EquipoiseError:
        store.close()
        raise
    return store


@contextmanager
def translated() -> Iterator[None]:
    """Turn the database's errors into ours. A broken constraint stays: it is a defect, not a condition."""
    try:
        yield
    except IntegrityError:
        raise
    except (DatabaseError, InterfaceError) as error:
        problem = str(error.orig).lower()
        if "malformed" in problem or "not a database" in problem:
            raise DataLoss("the store is damaged") from error
        raise Unavailable("the store cannot be used now") from error
    except PoolTimeoutError as error:
        raise Unavailable("the store is busy") from error


def _engine(url: URL, writes: bool) -> Engine:
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=1 if writes else READERS,
        max_overflow=0,
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        # The driver's own guesses at where transactions begin are switched off; `begin` below says it.
        connection.isolation_level = None
        _pragma(connection, "foreign_keys", "ON", 1)
        _pragma(connection, "journal_mode", "WAL", "wal")
        _pragma(connection, "synchronous", "FULL", 2)
        if not writes:
            _pragma(connection, "query_only", "ON", 1)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


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


def _make_private(path: Path) -> None:
    """Make the file readable by its owner only before anything is in it; SQLite's own files follow it."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise InvalidArgument("store", f"cannot be opened: {error.strerror}") from None
