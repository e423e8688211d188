"""PostgreSQL as the store: one database, shared by several servers.

Writing transactions take turns: each locks the same table before it reads anything. So each sees the state of the
last commit until it ends, nobody else writes meanwhile, and no transaction has to be repeated. The level
SERIALIZABLE is not used: the lock is free a moment before the database has removed its SERIALIZABLE data about the
commit, so the database could refuse the last of three transactions in a row without reason. Should the lock ever be
missing, unique names and numbers and conditional updates refuse one of two transactions that meet.

Readers see the state of one commit. The settings `synchronous_commit` and `fsync` are on, which is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool, QueuePool

from equipoise.errors import InvalidArgument, Unavailable

DRIVER = "postgresql+psycopg"
READERS = 8  # connections that read at the same time, of each server
# The server notices a database that has vanished within half a minute, and tells the waiting callers.
CONNECTING = {
    "connect_timeout": 10,
    "client_encoding": "utf8",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}

# The database likewise notices a server whose machine has vanished, and frees its locks.
KEEPALIVES = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"

# A server that waits for its turn gives up after 15 s, as on SQLite; one that hangs during its turn loses it.
_SETTINGS = f"""
SET synchronous_commit = on;
SET lock_timeout = '15s';
SET idle_in_transaction_session_timeout = '60s';
{KEEPALIVES}
"""
_READ_BACK = (
    "SELECT current_setting('fsync'), current_setting('synchronous_commit'), "
    "current_setting('server_encoding'), 'B' < 'a' AND 'a-c' < 'ab'"
)
# Every store of ours has this table, and only migrations write to it, so nothing else waits for the lock.
_TURN = "LOCK TABLE alembic_version IN EXCLUSIVE MODE"
# Any two numbers that every server takes: here the letters "equipois" and the next.
_MIGRATION = 0x65717569706F6973
_SERVING = _MIGRATION + 1
_OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND backend_type = 'client backend'"
)


def prepare(url: URL) -> None:
    """Check that the driver is installed, that it knows the URL's options, and that the database answers.

    Raises:
        InvalidArgument: the driver is missing, or the URL's options make no sense; the field is `store`.
        Unavailable: the database cannot be reached.
    """
    try:
        probe = create_engine(url, poolclass=NullPool, connect_args=CONNECTING)
    except ModuleNotFoundError:
        raise InvalidArgument(
            "store", "PostgreSQL needs its driver: pip install 'equipoise[server,postgres]'"
        ) from None
    except ArgumentError:
        problem = "names hosts in two ways; write ?host=FIRST:PORT&host=SECOND:PORT and none before the database"
        raise InvalidArgument("store", problem) from None
    _check_options(url)
    try:
        with probe.connect():
            pass
    except OperationalError as error:
        # The driver's first line says where it tried and why that failed, and never the password.
        raise Unavailable(f"the store cannot be reached: {str(error.orig).partition(chr(10))[0]}") from error


def _check_options(url: URL) -> None:
    """Raise `InvalidArgument` for an option that is none of libpq's, or a secret to it."""
    from psycopg import pq  # noqa: PLC0415  # the driver is an extra

    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults() if option.dispchar != b"*"}
    for name, values in url.normalized_query.items():
        if name not in known:
            nearest = get_close_matches(name, known, n=1)
            meant = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise InvalidArgument("store", f"has an option {name!r} that PostgreSQL does not know{meant}")
        if len(values) > 1 and name not in ("host", "port"):
            raise InvalidArgument("store", f"has the option {name!r} more than once")


def check_there(url: URL) -> None:
    """Check the database as `prepare` does, which creates nothing."""
    prepare(url)


def engine(url: URL, writes: bool) -> Engine:
    """Return the engine of this server's one writing connection, or of its reading connections."""
    made = create_engine(
        url,
        hide_parameters=True,  # errors, which may be logged, quote no workload
        poolclass=QueuePool,
        pool_size=1 if writes else READERS,
        max_overflow=0,
        pool_pre_ping=True,
        isolation_level="REPEATABLE READ",
        connect_args=CONNECTING,
    )

    @event.listens_for(made, "connect")
    def connected(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        _configure(connection)
        connection.read_only = not writes

    if writes:

        @event.listens_for(made, "begin")
        def begin(connection: Connection) -> None:
            # LOCK is the transaction's first statement and takes no snapshot, so the statements that follow see
            # everything that was committed before the lock was granted.
            connection.exec_driver_sql(_TURN)

    return made


@contextmanager
def migrating(url: URL, _: Engine) -> Iterator[Connection]:
    """Open the transaction in which the store is migrated. Servers that start at the same time take turns."""
    made = create_engine(url, poolclass=NullPool, connect_args=CONNECTING)
    event.listen(made, "connect", lambda connection, _: _configure(connection))
    with made.begin() as connection:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION})")
        yield connection


@contextmanager
def shared(url: URL) -> Iterator[None]:
    """Hold the store together with other servers. Raises `InvalidArgument` while a repair holds the store."""
    with _session(url) as connection:
        if not connection.exec_driver_sql(f"SELECT pg_try_advisory_lock_shared({_SERVING})").scalar():
            raise InvalidArgument("store", "is being repaired by another process; wait until it has ended")
        yield


@contextmanager
def exclusive(url: URL) -> Iterator[None]:
    """Hold the store alone, so that no server can start. Raises `InvalidArgument` while the store is in use."""
    with _session(url) as connection:
        free = connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({_SERVING})").scalar()
        # A server may have lost its lock with its connection, but hardly all of its connections.
        others = connection.exec_driver_sql(_OTHERS).scalar()
        if not free or others:
            raise InvalidArgument("store", "is in use: stop the server, and every other connection to the database")
        yield


@contextmanager
def _session(url: URL) -> Iterator[Connection]:
    """Open a connection whose locks last as long as the context. The database frees the locks after a crash."""
    prepare(url)
    made = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=CONNECTING)
    with made.connect() as connection:
        connection.exec_driver_sql(KEEPALIVES)
        yield connection


def _configure(connection: DBAPIConnection) -> None:
    """Set the connection's settings, and check those on which commits and the order of names depend."""
    cursor = connection.cursor()
    try:
        cursor.execute(_SETTINGS)
        cursor.execute(_READ_BACK)
        fsync, synchronous, encoding, ordered = cursor.fetchone() or ("", "", "", False)
    finally:
        cursor.close()
    # Commit, because a rollback of the transaction would undo the settings, too.
    connection.commit()
    for name, value in (("fsync", fsync), ("synchronous_commit", synchronous)):
        if value != "on":
            raise InvalidArgument("store", f"the database runs with {name} = {value}, so a commit can be lost")
    if encoding != "UTF8" or not ordered:
        raise InvalidArgument(
            "store",
            "the database must hold UTF-8 and order by bytes; make it with: "
            "CREATE DATABASE name TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'",
        )
