"""The stores that tests run on: an SQLite file, or a database of a PostgreSQL that the tests start for themselves.

    def test_something(store_url: str) -> None: ...      # runs once on each store

The fixtures are in `conftest.py`. The PostgreSQL is a cluster of its own in a temporary directory, reached by a
socket there and nothing else; it ends with the tests, also when they are killed. Every test gets a database of
its own. The cluster runs with the settings that a server demands, in memory where there is room: no test here
pulls the plug of a machine, so what is synced need not reach a disk.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from equipoise_server.storage.store import Store, open_store
from equipoise_server.storage.tables import metadata
from harness.waiting import PATIENCE, pauses

ROOM = 2**30  # bytes
SQLITE_FILE = "equipoise.db"
IN_CI = "with CI=true everything about stores must be tested on PostgreSQL, too"
MISSING = "PostgreSQL was not found, so everything about stores was tested on SQLite only."

# Ends the database as soon as its own input ends, which is when the tests end, however they end. TERM ends one that
# has only just been started, and tells one that runs to wait for its clients; INT tells it not to.
KEEPER = 'directory=$1; shift; "$@" & cat >/dev/null; kill -TERM $!; kill -INT $!; wait $!; rm -rf "$directory"'


def in_ci() -> bool:
    """Whether nothing may be left out."""
    return os.environ.get("CI", "").lower() == "true"


def find_binaries() -> Path | None:
    """The directory that has `initdb` and `postgres`; Debian does not put it into PATH."""
    places = [Path(place) for place in os.environ.get("PATH", "").split(os.pathsep) if place]
    if (config := shutil.which("pg_config")) is not None:
        told = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        places.append(Path(told.stdout.strip()))
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name, reverse=True)
    for place in places:
        if all(os.access(place / name, os.X_OK) for name in ("initdb", "postgres")):
            # A link in PATH leads to where the server finds its own files.
            return (place / "postgres").resolve().parent
    return None


def postgresql_is_here() -> bool:
    """Whether tests can start a PostgreSQL and talk to it."""
    return find_binaries() is not None and importlib.util.find_spec("psycopg") is not None


# In CI a missing PostgreSQL fails the tests that need it; elsewhere they run on SQLite, and a line says so.
KINDS = ("sqlite", "postgresql") if in_ci() or postgresql_is_here() else ("sqlite",)


@dataclass(frozen=True)
class Cluster:
    """A PostgreSQL that is running; `directory` holds its socket."""

    directory: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def url(self, database: str) -> str:
        """The URL of a database, as a server's configuration says it."""
        return f"postgresql+psycopg://postgres@/{database}?host={self.directory}"

    def create(self, settings: str = "TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'") -> str:
        """The URL of a new, empty database."""
        name = f"test_{next(self._numbers)}"
        self._command(f"CREATE DATABASE {name} {settings}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, also under those who still use it."""
        self._command(f"DROP DATABASE IF EXISTS {make_url(url).database} WITH (FORCE)")

    @contextmanager
    def database(self, _: Path) -> Iterator[str]:
        """The URL of a new, empty database that is there while the context lasts."""
        url = self.create()
        yield url
        self.drop(url)

    def _command(self, command: str) -> None:
        _administer(self.url("postgres"), command)


def sqlite_url(directory: Path) -> str:
    """The URL of the file in a directory that tests have their store in."""
    return f"sqlite:///{directory / SQLITE_FILE}"


def open_empty(url: str) -> Store:
    """Open an empty store for a test of what is kept in it.

    A file is copied from the first that was made, as making one takes four times as long as opening it.
    """
    file = make_url(url).database
    if url.startswith("sqlite:") and file is not None and not Path(file).exists():
        Path(file).touch(0o600)
        Path(file).write_bytes(_empty_file())
    return open_store(url)


@cache
def _empty_file() -> bytes:
    """What is in a store that nothing was written to."""
    with tempfile.TemporaryDirectory() as directory:
        open_store(sqlite_url(Path(directory))).close()
        return (Path(directory) / SQLITE_FILE).read_bytes()


@contextmanager
def sqlite_file(directory: Path) -> Iterator[str]:
    """The URL of a file in a directory, which is not there yet."""
    yield sqlite_url(directory)


@contextmanager
def cluster(*settings: str) -> Iterator[Cluster]:
    """A PostgreSQL of one's own while the context lasts; `settings` are `name=value`."""
    binaries = find_binaries()
    assert binaries is not None, f"{IN_CI}: PostgreSQL is not installed"
    assert importlib.util.find_spec("psycopg") is not None, f"{IN_CI}: psycopg is not installed"
    # Not pytest's directory: a socket's path may have 107 bytes only.
    directory = Path(tempfile.mkdtemp(prefix="equipoise-pg-", dir=_in_memory()))
    account: dict[str, Any] = {}
    if os.getuid() == 0:
        # PostgreSQL refuses to run as root; its Debian package comes with an account.
        shutil.chown(directory, "postgres", "postgres")
        account = {"user": "postgres", "group": "postgres", "extra_groups": []}
    data = directory / "data"
    subprocess.run(
        [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
        check=True,
        capture_output=True,
        cwd=directory,
        **account,
    )
    options = ("listen_addresses=", f"unix_socket_directories={directory}", "max_connections=200", *settings)
    server = [str(binaries / "postgres"), "-D", str(data), *(part for each in options for part in ("-c", each))]
    with (
        (directory / "log").open("wb") as log,
        subprocess.Popen(
            ["sh", "-c", KEEPER, "keeper", str(directory), *server],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
            **account,
        ) as keeper,
    ):
        started = Cluster(directory)
        try:
            _wait(started, keeper)
            yield started
        finally:
            assert keeper.stdin is not None
            keeper.stdin.close()
            keeper.wait(PATIENCE)
    assert not directory.exists()


def _in_memory() -> Path | None:
    """A directory in memory with room for some hundred small databases; None for the usual place."""
    place = Path("/dev/shm")
    return place if place.is_dir() and shutil.disk_usage(place).free > ROOM else None


def _wait(started: Cluster, keeper: subprocess.Popen[bytes]) -> None:
    engine = create_engine(started.url("postgres"), poolclass=NullPool)
    pause = pauses()
    while True:
        try:
            with engine.connect():
                return
        except OperationalError:
            log = (started.directory / "log").read_text()
            assert keeper.poll() is None, log
            time.sleep(next(pause))


def allow_changes(connection: Connection, table: str) -> None:
    """Take away what keeps a table append-only, as somebody who can write the database could."""
    where = "" if connection.dialect.name == "sqlite" else f" ON {table}"
    for change in ("update", "delete"):
        connection.execute(text(f"DROP TRIGGER {table}_no_{change}{where}"))


def refuse_inserts(connection: Connection, table: str) -> None:
    """Let every insert into a table fail with "stop", until `accept_inserts`."""
    if connection.dialect.name == "sqlite":
        connection.execute(
            text(f"CREATE TRIGGER stop BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'stop'); END")
        )
        return
    refusal = "RAISE 'stop' USING ERRCODE = 'integrity_constraint_violation'"
    connection.execute(
        text(f"CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {refusal}; END $$")
    )
    connection.execute(text(f"CREATE TRIGGER stop BEFORE INSERT ON {table} EXECUTE FUNCTION stop()"))


def accept_inserts(connection: Connection, table: str) -> None:
    """The end of `refuse_inserts`."""
    where = "" if connection.dialect.name == "sqlite" else f" ON {table}"
    connection.execute(text(f"DROP TRIGGER stop{where}"))


def back_up(url: str) -> str:
    """The URL of a copy of a store that nobody uses now."""
    parsed = make_url(url)
    copy = parsed.set(database=f"{parsed.database}_{time.monotonic_ns()}")
    if parsed.drivername == "sqlite":
        shutil.copy(str(parsed.database), str(copy.database))
    else:
        _administer(url, f"CREATE DATABASE {copy.database} TEMPLATE {parsed.database}")
    return copy.render_as_string(hide_password=False)


def restore(url: str, copy: str) -> None:
    """Put a copy in the place of a store that nobody uses now; only the newer journal is gone. Uses the copy up."""
    old, new = make_url(url).database or "", make_url(copy).database or ""
    if make_url(url).drivername == "sqlite":
        for path in Path(old).parent.glob(f"{Path(old).name}-*"):
            path.unlink()
        Path(new).replace(old)
    else:
        _administer(url, f"DROP DATABASE {old}")
        _administer(url, f"ALTER DATABASE {new} RENAME TO {old}")


def _administer(url: str, command: str) -> None:
    """Carry out what cannot be done within the database that it is about."""
    engine = create_engine(make_url(url).set(database="postgres"), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(command)


def change_directly(url: str, *statements: str) -> None:
    """Change a database behind the store's back."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


@contextmanager
def statements() -> Iterator[set[str]]:
    """The texts of all statements that are carried out in a context, on any store."""
    told: set[str] = set()

    def carried_out(_: Connection, __: Any, statement: str, ___: Any, ____: Any, _____: bool) -> None:
        told.add(statement)

    event.listen(Engine, "before_cursor_execute", carried_out)
    try:
        yield told
    finally:
        event.remove(Engine, "before_cursor_execute", carried_out)


def stored_bytes(url: str) -> bytes:
    """All that a store holds: the files of an SQLite store, every column of every row of a PostgreSQL one."""
    database = Path(make_url(url).database or "")
    if make_url(url).drivername == "sqlite":
        return b"".join(path.read_bytes() for path in database.parent.glob(f"{database.name}*"))
    with create_engine(url, poolclass=NullPool).connect() as connection:
        rows = [row for table in metadata.sorted_tables for row in connection.execute(table.select())]
    return b"\n".join(value if isinstance(value, bytes) else str(value).encode() for row in rows for value in row)
