"""The store: transactions, of which one at a time writes, and durable commits.

    store = open_store("sqlite:////var/lib/equipoise/equipoise.db")
    with store.write() as connection: ...   # commits at the end, rolls back on any exception
    with store.read() as connection: ...

Writing transactions take turns from their beginning, on both databases and across all servers of one store. So the
facts that a writing transaction reads stay as they are until it ends, and its code can assume a single writer.
The modules `sqlite` and `postgresql` say how each database provides this.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from urllib.parse import unquote_plus

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from equipoise.errors import InvalidArgument
from equipoise_server.storage import postgresql, sqlite
from equipoise_server.storage.claims import Claims, SharedClaims, SoleClaims
from equipoise_server.storage.failures import translated
from equipoise_server.storage.fair_lock import Turns
from equipoise_server.storage.migrate import check_current, migrate
from equipoise_server.url_secrets import holds_secret


class ReadOnlyStore:
    """An open store that can only be read. Safe to use from several threads."""

    def __init__(self, reader: Engine) -> None:
        self._reader = reader

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that sees one committed state and cannot write."""
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
        """Open a transaction that may write. It is durable when the context has ended without an exception."""
        with self._turns, translated(), self._writer.begin() as connection:
            yield connection

    def claims(self) -> Claims:
        """Return new claims of this server on the store's rounds. The caller must close them."""
        return SharedClaims(self._url) if self._url.drivername == postgresql.DRIVER else SoleClaims()

    def close(self) -> None:
        """Close every connection."""
        self._writer.dispose()
        super().close()


def open_store(url: str) -> Store:
    """Open the store at an SQLAlchemy URL; create and migrate it if necessary.

    Raises:
        InvalidArgument: the URL cannot be used, the database is not ours, has unsafe settings, or was written by a
            newer version; the field is `store`.
        Unavailable: the store cannot be opened now.
        DataLoss: the store is damaged.
    """
    parsed = parsed_url(url)
    database = postgresql if parsed.drivername == postgresql.DRIVER else sqlite
    database.prepare(parsed)
    writer, reader = database.engine(parsed, writes=True), database.engine(parsed, writes=False)
    store = Store(parsed, writer, reader)
    try:
        with translated(), database.migrating(parsed, writer) as connection:
            migrate(connection)
        # Open a writing connection, which checks its settings, before anything depends on them.
        with store.write():
            pass
    except BaseException:
        store.close()
        raise
    return store


@contextmanager
def read_only(url: str) -> Iterator[ReadOnlyStore]:
    """Open an existing store for reading only, whether or not servers use it.

    Raises:
        InvalidArgument: there is no store, or another version has written it; the field is `store`.
    """
    parsed = parsed_url(url)
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
    """Hold a store for a server. One server alone can hold an SQLite store, as two would run the same rounds twice.

    On PostgreSQL several servers share a store, and claims say which server runs a round.

    Raises:
        InvalidArgument: another server (on SQLite) or a repair holds the store; the field is `store`.
    """
    parsed = parsed_url(url)
    return (postgresql.shared if parsed.drivername == postgresql.DRIVER else sqlite.hold)(parsed)


def hold_exclusively(url: str) -> AbstractContextManager[None]:
    """Hold a store for a repair that no server may see half done. Raises `InvalidArgument` while it is in use."""
    parsed = parsed_url(url)
    return (postgresql.exclusive if parsed.drivername == postgresql.DRIVER else sqlite.hold)(parsed)


def parsed_url(url: str) -> URL:
    """Return the URL of a store in parts. Raises `InvalidArgument`; the field is `store`."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise InvalidArgument("store", f"is not a database URL; write {_FORMS}") from None
    if not unquote_plus(url).isprintable():
        raise InvalidArgument("store", "holds a control character")
    if parsed.drivername not in ("sqlite", postgresql.DRIVER) or parsed.database in (None, "", ":memory:"):
        raise InvalidArgument("store", f"must be the URL of a database, {_FORMS}")
    if parsed.password is not None or holds_secret(url):
        # A secret would show in lists of processes, in the configuration and in its backups.
        problem = "put a password into a file of mode 0600 that PGPASSFILE names, others into a service file"
        raise InvalidArgument("store", f"must not hold a password or another secret; {problem}")
    if parsed.drivername == "sqlite" and (parsed.query or parsed.host or parsed.username or parsed.port):
        raise InvalidArgument("store", "must name a file and nothing else on SQLite: write sqlite:///PATH")
    return parsed


_FORMS = "sqlite:///PATH or postgresql+psycopg://USER@HOST/DATABASE"
