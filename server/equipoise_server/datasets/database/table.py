"""Tables and views in the custodian's databases, counted where they lie.

The data directory has a file for each, which ends in `.database.toml` and says how the table is reached:

    url = "postgresql+psycopg://reader@db.example/warehouse?sslmode=verify-full"
    schema = "public"              # may be left out
    table = "orders"               # a table or a view
    password_file = "/run/reader"  # may be left out; the driver's own ways, such as PGPASSFILE, work, too

The database is asked one question: how many rows have which categories of the schema's attributes. So its logs tell
the public schema and nothing of what analysts asked. Columns have types there, and no text is read as a number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from sqlalchemy import Connection, MetaData, Select, Table, create_engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, NoSuchTableError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise_server.datasets.columns import Column
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.description import Description, private_file, read_description
from equipoise_server.datasets.packed_codes import counts_of, words_of
from equipoise_server.datasets.persons.groups import (
    BLOCK,
    PersonColumn,
    RowsAPerson,
    Settled,
    Unsettled,
    whole_persons,
)
from equipoise_server.datasets.progress import OnRead, unseen
from equipoise_server.datasets.snapshot import Snapshot, of_rows
from equipoise_server.datasets.sql.columns import columns_of
from equipoise_server.datasets.sql.persons import person_statements, rows_a_person_statement
from equipoise_server.datasets.sql.snapshot import snapshot_statement
from equipoise_server.datasets.sql.statement import grouping
from equipoise_server.url_secrets import holds_secret

BATCH = 100_000  # groups that are fetched at once
LOCK_SECONDS = 15  # that a server waits for a table which somebody else has locked
CONNECT_SECONDS = 10
DATA_EXCEPTION = "22"  # the class of SQLSTATE whose messages quote values


class Address(Description):
    """The keys of the file."""

    url: str
    table: str
    namespace: str | None = Field(default=None, alias="schema")
    password_file: str | None = None


@dataclass(frozen=True)
class DatabaseTable:
    """A table that a file describes. `datasets.source.Source` documents the methods."""

    path: Path
    title: ClassVar[str] = "database"
    suffixes: ClassVar[tuple[str, ...]] = (".database.toml",)

    @classmethod
    def of(cls, path: Path, options: Mapping[str, str], field: str) -> Self:
        """Return the table that the file at a path describes. Raises `InvalidArgument` for options."""
        if options:
            raise InvalidArgument(f"{field}: {next(iter(options))}", "descriptions of databases have no options")
        return cls(path)

    def exists(self) -> bool:
        return os.path.isfile(self.path)

    def counts(self, schema: Schema, progress: OnRead = unseen) -> Counts:  # noqa: ARG002  # no database tells
        address = self._address()
        with _translate_errors(), _connected(self._url(address)) as connection:
            asked = grouping(_reflected(connection, address), schema)
            *words, counts = _columns(connection, asked, len(words_of(schema)) + 1)
        return counts_of(schema, words, counts)

    def snapshot(self, schema: Schema, person: str = "") -> Snapshot:
        address = self._address()
        with _translate_errors(), _connected(self._url(address)) as connection:
            if connection.dialect.name == "postgresql":
                # A server asks this before it charges a round: a locked table must not hold the server up.
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
            asked = snapshot_statement(_reflected(connection, address), schema, person)
            return of_rows([int(fact or 0) for fact in connection.execute(asked).one()])

    def persons(
        self,
        schema: Schema,
        column: PersonColumn,
        progress: OnRead = unseen,  # noqa: ARG002  # no database tells
    ) -> Iterator[Settled | Unsettled]:
        address = self._address()
        with _translate_errors(), _connected(self._url(address)) as connection:
            asked = person_statements(_reflected(connection, address), schema, column)
            count, nameless = connection.execute(asked.totals).one()
            *packed, rows, persons = _columns(connection, asked.settled, len(words_of(schema)) + 2)
            yield Settled(packed, rows, persons, int(count), int(nameless or 0))
            streamed = connection.execution_options(stream_results=True, yield_per=BLOCK).execute(asked.unsettled)
            yield from whole_persons(streamed.partitions())

    def rows_a_person(self, column: str) -> RowsAPerson:
        address = self._address()
        with _translate_errors(), _connected(self._url(address)) as connection:
            asked = rows_a_person_statement(_reflected(connection, address), column)
            return RowsAPerson.of([tuple(row) for row in connection.execute(asked)])

    def columns(self) -> tuple[Column, ...]:
        address = self._address()
        with _translate_errors(), _connected(self._url(address)) as connection:
            table = _reflected(connection, address)
            return tuple(columns_of(lambda statement: connection.execute(statement).all(), table))

    def same_table(self, other: object) -> bool:
        if not isinstance(other, DatabaseTable) or not other.exists():
            return False
        return self._place() == other._place()

    def _place(self) -> tuple[object, ...]:
        address = self._address()
        url = make_url(address.url)
        return (url.get_backend_name(), url.host, url.port, url.database, address.namespace, address.table)

    def _address(self) -> Address:
        return read_description(self.path, Address)

    def _url(self, address: Address) -> URL:
        """Return the database's URL with the password, which no message ever has."""
        try:
            url = make_url(address.url)
        except ArgumentError:
            raise InvalidArgument("table: url", f"is no URL of a database, in {self.path.name}") from None
        if url.password is not None or holds_secret(address.url):
            problem = "must not have a password or another secret; name a file with the password in password_file"
            raise InvalidArgument("table: url", problem)
        if address.password_file is None:
            return url
        secret = private_file(self.path, address.password_file, "table: password_file")
        try:
            return url.set(password=secret.read_text(encoding="utf-8").rstrip("\n"))
        except (OSError, UnicodeDecodeError):
            raise InvalidArgument("table: password_file", f"{secret} cannot be read") from None


def _reflected(connection: Connection, address: Address) -> Table:
    """Return the table or view with its columns, as the database describes it. Raises `NoSuchTableError`."""
    return Table(address.table, MetaData(), schema=address.namespace, autoload_with=connection, resolve_fks=False)


def _columns(connection: Connection, statement: Select[Any], width: int) -> list[NDArray[np.int64]]:
    """Return the columns of a statement of so many whole numbers, int64 each."""
    streamed = connection.execution_options(stream_results=True, yield_per=BATCH)
    result = streamed.execute(statement)
    parts = [np.array([tuple(row) for row in rows], dtype=np.int64) for rows in result.partitions()]
    return list(np.concatenate(parts).T if parts else np.empty((width, 0), dtype=np.int64))


@contextmanager
def _connected(url: URL) -> Iterator[Connection]:
    """Open a connection that sees one state of the database and cannot write."""
    settings: dict[str, object] = {}
    postgresql = url.get_backend_name() == "postgresql"
    if postgresql:
        # In UTC, as what a time is called as text must not depend on the database's place.
        settings = {"connect_timeout": CONNECT_SECONDS, "options": "-c timezone=UTC -c datestyle=ISO"}
    engine = create_engine(url, poolclass=NullPool, hide_parameters=True, connect_args=settings)
    if postgresql:
        engine = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    try:
        connection = engine.connect()
    except DBAPIError as error:
        # Nothing was asked yet, so the message is about the connection. Drivers never tell the password.
        raise InvalidArgument("table", f"the database cannot be reached: {_first_line(error)}") from None
    with connection, connection.begin():
        yield connection


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Turn the database's errors into ours.

    Drivers' messages about values quote these, and values are private: only messages about something else are told.
    """
    try:
        yield
    except (ModuleNotFoundError, NoSuchModuleError):
        raise InvalidArgument("table: url", "needs a driver that is not installed; see docs/tables.md") from None
    except NoSuchTableError:
        raise InvalidArgument("table: table", "there is no such table or view in the database") from None
    except DBAPIError as error:
        code = str(getattr(error.orig, "sqlstate", None) or "")
        told = code and not code.startswith(DATA_EXCEPTION)
        reason = _first_line(error) if told else " ".join(filter(None, (type(error.orig).__name__, code)))
        raise InvalidArgument("table", f"cannot be read from the database: {reason}") from None
    except SQLAlchemyError as error:
        raise InvalidArgument("table", f"cannot be read from the database ({type(error).__name__})") from None


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).partition("\n")[0]
