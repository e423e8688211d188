"""The store: durable settings, transactions, migrations, and what it refuses to open."""

from __future__ import annotations

import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import func, select, text
from sqlalchemy.exc import IntegrityError

from equipoise.errors import DataLoss, InvalidArgument, Unavailable
from equipoise_server.storage.store import Store, open_store
from equipoise_server.storage.tables import identities, journal, metadata


def url(directory: Path) -> str:
    return f"sqlite:///{directory / 'equipoise.db'}"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(url(tmp_path))
    yield store
    store.close()


def add(store: Store, name: str) -> None:
    with store.write() as connection:
        connection.execute(identities.insert().values(name=name, role="analyst", created=0))


def names(store: Store) -> list[str]:
    with store.read() as connection:
        return list(connection.execute(select(identities.c.name).order_by(identities.c.name)).scalars())


def test_durability_is_what_was_asked_for(store: Store) -> None:
    with store.write() as connection:
        pragmas = ("journal_mode", "synchronous", "foreign_keys")
        values = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in pragmas]
    assert values == ["wal", 2, 1]


def test_migrations_build_the_tables_that_the_code_uses(store: Store) -> None:
    with store.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_migrations_hold_every_constraint_of_the_tables(store: Store) -> None:
    with store.read() as connection:
        built = "".join(connection.execute(text("SELECT sql FROM sqlite_master WHERE sql NOT NULL")).scalars())
    expected = [
        str(constraint.name)
        for table in metadata.tables.values()
        for constraint in table.constraints
        if constraint.__class__.__name__ == "CheckConstraint"
    ]
    assert expected
    assert all(f"CONSTRAINT {name} CHECK" in built for name in expected)


def test_only_the_owner_can_read_the_file(store: Store, tmp_path: Path) -> None:
    add(store, "a")
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_what_was_committed_is_there_after_reopening(tmp_path: Path) -> None:
    first = open_store(url(tmp_path))
    add(first, "a")
    first.close()
    second = open_store(url(tmp_path))
    assert names(second) == ["a"]
    second.close()


def test_a_failed_transaction_leaves_nothing(store: Store) -> None:
    def fail() -> None:
        with store.write() as connection:
            connection.execute(identities.insert().values(name="b", role="analyst", created=0))
            raise RuntimeError("afterwards")

    with pytest.raises(RuntimeError, match="afterwards"):
        fail()
    assert names(store) == []


def test_a_reader_sees_the_last_commit_and_cannot_write(store: Store) -> None:
    add(store, "a")
    with store.write() as writer:
        writer.execute(identities.insert().values(name="b", role="analyst", created=0))
        assert names(store) == ["a"]
    assert names(store) == ["a", "b"]
    with pytest.raises(Unavailable), store.read() as connection:
        connection.execute(identities.delete())


def test_writers_wait_for_each_other(store: Store) -> None:
    def count_up() -> None:
        with store.write() as connection:
            seen = connection.execute(select(func.count()).select_from(identities)).scalar_one()
            connection.execute(identities.insert().values(name=f"{seen:03}", role="analyst", created=0))

    threads = [threading.Thread(target=count_up) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names(store) == [f"{count:03}" for count in range(20)]


def test_the_journal_cannot_be_changed(store: Store) -> None:
    entry = dict.fromkeys(("time", "rho", "epsilon", "delta"), 0)
    words = dict.fromkeys(("account", "round_id", "events"), "")
    with store.write() as connection:
        connection.execute(journal.insert().values(sequence=1, action="spend", digest=b"", **entry, **words))
    with pytest.raises(IntegrityError, match="append-only"), store.write() as connection:
        connection.execute(journal.update().values(rho=1))
    with pytest.raises(IntegrityError, match="append-only"), store.write() as connection:
        connection.execute(journal.delete())


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    open_store(url(tmp_path)).close()
    with sqlite3.connect(tmp_path / "equipoise.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(InvalidArgument, match=r"store: was written by a newer version.*9999"):
        open_store(url(tmp_path))


def test_a_foreign_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "equipoise.db") as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    with pytest.raises(InvalidArgument, match="store: is a database that Equipoise did not make"):
        open_store(url(tmp_path))
    with sqlite3.connect(tmp_path / "equipoise.db") as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("recipes",)]
    connection.close()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "equipoise.db").write_bytes(b"not a database at all" * 200)
    with pytest.raises(DataLoss, match="the store is damaged"):
        open_store(url(tmp_path))


@pytest.mark.parametrize("wrong", ["nonsense", "sqlite://", "sqlite:///:memory:", "postgresql://localhost/x"])
def test_urls_that_cannot_be_used_are_named(wrong: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^store: "):
        open_store(wrong)


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="store: cannot be opened: No such file or directory"):
        open_store(url(tmp_path / "missing"))
