"""Copies of a PostgreSQL store: one file, made by `pg_dump` while servers write and loaded by `pg_restore`."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, create_engine
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from equipoise.errors import InvalidArgument, Unavailable
from equipoise_server.storage.failures import translated
from equipoise_server.storage.postgresql import CONNECTING

MAINTENANCE = "postgres"  # the database from which others are renamed; every cluster has it
LOADED = "_restoring"
REPLACED = "_replaced_"


def write(url: URL, path: Path) -> None:
    """Write the store's state at one moment to the empty file `path`. Raises `InvalidArgument`, `Unavailable`."""
    _run("pg_dump", "--format=custom", f"--file={path}", f"--dbname={_conninfo(url)}")


@contextmanager
def beside(url: URL, path: Path) -> Iterator[URL]:
    """Load the copy `path` into a database beside the store's, and drop it at the end unless `exchange` took it.

    Raises:
        InvalidArgument: a server uses the store, or a program of PostgreSQL is missing.
        Unavailable: the copy cannot be loaded.
    """
    loaded = url.set(database=f"{url.database}{LOADED}")
    with _maintenance(url) as connection:
        _refuse_in_use(connection, url)
        name = _quoted(connection, loaded)
        connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {name}")
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'")
        try:
            _run("pg_restore", "--single-transaction", "--no-owner", f"--dbname={_conninfo(loaded)}", str(path))
            yield loaded
        finally:
            connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {name}")


def exchange(url: URL, loaded: URL) -> str:
    """Give a loaded copy the store's name; return the name that the store before has now, empty if there was none.

    Raises:
        InvalidArgument: the store is in use; nothing is changed. The field is `store`.
    """
    kept = f"{url.database}{REPLACED}{secrets.token_hex(4)}"
    with _maintenance(url) as connection:
        there = "SELECT 1 FROM pg_database WHERE datname = %(name)s"
        if connection.exec_driver_sql(there, {"name": url.database}).scalar() is None:
            kept = ""
        else:
            _refuse_in_use(connection, url)
            try:
                # PostgreSQL renames no database to which somebody has connected in between.
                _rename(connection, url, url.set(database=kept))
            except DBAPIError as error:
                raise InvalidArgument("store", f"cannot be renamed: {error.orig}") from None
        _rename(connection, loaded, url)
    return kept


def _refuse_in_use(connection: Connection, url: URL) -> None:
    """Raise `InvalidArgument` while anybody is connected to the store."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = %(name)s AND backend_type = 'client backend'"
    if connection.exec_driver_sql(others, {"name": url.database}).scalar():
        raise InvalidArgument("store", "is in use: stop the server, and every other connection to the database")


def _rename(connection: Connection, old: URL, new: URL) -> None:
    connection.exec_driver_sql(f"ALTER DATABASE {_quoted(connection, old)} RENAME TO {_quoted(connection, new)}")


def _quoted(connection: Connection, url: URL) -> str:
    return connection.dialect.identifier_preparer.quote_identifier(url.database or "")


@contextmanager
def _maintenance(url: URL) -> Iterator[Connection]:
    made = create_engine(
        url.set(database=MAINTENANCE), poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=CONNECTING
    )
    with translated(), made.connect() as connection:
        yield connection


def _conninfo(url: URL) -> str:
    """Return the URL in libpq's own form. It has no password: libpq reads that from the file PGPASSFILE names."""
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415  # the driver is an extra

    _, parameters = create_engine(url, poolclass=NullPool).dialect.create_connect_args(url)
    words = {name: str(value) for name, value in parameters.items() if isinstance(value, (str, int))}
    return make_conninfo("", **words)


def _run(program: str, *arguments: str) -> None:
    try:
        ended = subprocess.run([program, *arguments], capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError:
        raise InvalidArgument(
            program, "is not installed; it comes with PostgreSQL's programs for clients"
        ) from None
    if ended.returncode:
        said = ended.stderr.strip().splitlines() or ["it said nothing"]
        raise Unavailable(f"{program} failed: {said[0].removeprefix(f'{program}: ')}")
