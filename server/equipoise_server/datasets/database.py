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
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Connection, create_engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, NoSuchTableError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise_server.datasets.columns import Column
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.database_columns import columns_of
from equipoise_server.datasets.database_table import grouped
from equipoise_server.datasets.packed_codes import counts_of

CONNECT_SECONDS = 10
DATA_EXCEPTION = "22"  # the class of SQLSTATE whose messages quote values


class Address(BaseModel):
    """What the file says. Unknown keys are refused."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

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

    def counts(self, schema: Schema) -> Counts:
        address = self._address()
        with _told(), _connected(self._url(address)) as connection:
            words, counts = grouped(connection, address.table, address.namespace, schema)
        return counts_of(schema, words, counts)

    def columns(self) -> tuple[Column, ...]:
        address = self._address()
        with _told(), _connected(self._url(address)) as connection:
            return tuple(columns_of(connection, address.table, address.namespace))

    def same_table(self, other: object) -> bool:
        if not isinstance(other, DatabaseTable) or not other.exists():
            return False
        return self._place() == other._place()

    def _place(self) -> tuple[object, ...]:
        address = self._address()
        url = make_url(address.url)
        return (url.get_backend_name(), url.host, url.port, url.database, address.namespace, address.table)

    def _address(self) -> Address:
        try:
            return Address.model_validate(tomllib.loads(self.path.read_text(encoding="utf-8")))
        except OSError as error:
            raise InvalidArgument("table", f"{self.path.name} cannot be read: {error.strerror}") from None
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            raise InvalidArgument(f"table: {key}", f"{first['msg']}, in {self.path.name}") from None
        except ValueError as error:
            raise InvalidArgument("table", f"{self.path.name} is not TOML: {error}") from None

    def _url(self, address: Address) -> URL:
        """Return the database's URL with the password, which no message ever has."""
        try:
            url = make_url(address.url)
        except ArgumentError:
            raise InvalidArgument("table: url", f"is no URL of a database, in {self.path.name}") from None
        if url.password is not None:
            raise InvalidArgument("table: url", "must not have a password; name a file with it in password_file")
        if address.password_file is None:
            return url
        secret = self.path.parent / address.password_file
        try:
            if stat.S_IMODE(secret.stat().st_mode) & 0o077:
                raise InvalidArgument("table: password_file", f"{secret} is open to others; make it mode 0600")
            return url.set(password=secret.read_text(encoding="utf-8").rstrip("\n"))
        except OSError as error:
            raise InvalidArgument("table: password_file", f"{secret} cannot be read: {error.strerror}") from None


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
def _told() -> Iterator[None]:
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
