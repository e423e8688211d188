"""The store: transactions, one that writes at a time, and how durable a commit is.

    store = open_store("sqlite:////var/lib/equipoise/equipoise.db")
    with store.write() as connection: ...   # commits at the end, rolls back on any exception
    with store.read() as connection: ...

Transactions that write take turns from their beginning, on both databases and across all servers of one store.
So whatever a transaction has read stays as it is until it ends, and code that is right for one writer is right.
What SQLite and PostgreSQL each do for that is in the modules of their names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from equipoise.errors import InvalidArgument
from equipoise_server.storage import postgresql, sqlite
from equipoise_server.storage.claims import Claims, SharedClaims, SoleClaims
from equipoise_server.storage.failures import translated
from equipoise_server.storage.fair_lock import Turns
from equipoise_server.storage.migrate import check_current, migrate


class ReadOnlyStore:
    """An open store that nothing is written to. Safe to use from several threads."""

    def __init__(self, reader: Engine) -> None:
        self._reader = reader

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one committed state and cannot write."""
        with translated(), self._reader.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close every connection."""
        self._reader.dispose()


class Store(ReadOnlyStore):
    """An open store. Safe to use from several threads."""

    def __init__(self, url: URL, writer: Engine, reader: Engine) -> None:
        super().__init__(reader)
        self._url = url
        self._writer = writer
        self._turns = Turns()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that may write. Durable when the block has ended without an exception."""
        with self._turns, translated(), self._writer.begin() as connection:
            yield connection

    def claims(self) -> Claims:
        """Which rounds this server runs, if several servers can share the store; to be closed by the caller."""
        return SharedClaims(self._url) if self._url.drivername == postgresql.DRIVER else SoleClaims()

    def close(self) -> None:
        """Close every connection."""
        self._writer.dispose()
        super().close()


def open_store(url: str) -> Store:
    """Open the store at an SQLAlchemy URL, made and migrated if need be.

    Raises `InvalidArgument("store", ...)` for a URL that cannot be used, a database that is not ours or cannot
    keep what is promised, or a store written by a newer version; `Unavailable` where it cannot be opened;
    `DataLoss` where it is damaged.
    """
    parsed = _parsed(url)
    database = postgresql if parsed.drivername == postgresql.DRIVER else sqlite
    database.prepare(parsed)
    writer, reader = database.engine(parsed, writes=True), database.engine(parsed, writes=False)
    store = Store(parsed, writer, reader)
    try:
        with translated(), database.migrating(parsed, writer) as connection:
            migrate(connection)
        # The settings that a writing connection must have are read back before anyone relies on them.
        with store.write():
            pass
    except BaseException:
        store.close()
        raise
    return store


@contextmanager
def read_only(url: str) -> Iterator[ReadOnlyStore]:
    """An existing store, to read only, beside servers that use it or without any.

    Raises `InvalidArgument("store", ...)` where there is none, or one that another version has written.
    """
    parsed = _parsed(url)
    database = postgresql if parsed.drivername == postgresql.DRIVER else sqlite
    database.check_there(parsed)
    store = ReadOnlyStore(database.engine(parsed, writes=False))
    try:
        with store.read() as connection:
            check_current(connection)
        yield store
    finally:
        store.close()


def hold(url: str) -> AbstractContextManager[None]:
    """Holds a store for a server: an SQLite store for one only, as two would run the same rounds twice.

    On PostgreSQL several servers share a store, and claims say which one runs a round. Raises
    `InvalidArgument("store", ...)` where another server, or a repair, holds the store.
    """
    parsed = _parsed(url)
    return (postgresql.shared if parsed.drivername == postgresql.DRIVER else sqlite.hold)(parsed)


def hold_exclusively(url: str) -> AbstractContextManager[None]:
    """Holds a store for what no server may see half done. Raises `InvalidArgument("store", ...)` as `hold` does."""
    parsed = _parsed(url)
    return (postgresql.exclusive if parsed.drivername == postgresql.DRIVER else sqlite.hold)(parsed)


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InvalidArgument("store", f"is not a database URL; write {_FORMS}") from None
    if parsed.drivername not in ("sqlite", postgresql.DRIVER) or parsed.database in (None, "", ":memory:"):
        raise InvalidArgument("store", f"must be the URL of a database, {_FORMS}")
    if parsed.password is not None or "password" in parsed.query:
        # It would be seen in lists of processes, in the configuration and in its backups.
        problem = "must not hold a password; put it into a file of mode 0600 that PGPASSFILE names"
        raise InvalidArgument("store", problem)
    return parsed


_FORMS = "sqlite:///PATH or postgresql+psycopg://USER@HOST/DATABASE"
