"""What both stores have in common: transactions, migrations, append-only tables, what is refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from harness.stores import change_directly
from sqlalchemy import CheckConstraint, create_engine, func, inspect, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.pool import NullPool

from equipoise.errors import InvalidArgument, Unavailable
from equipoise_server.storage.store import Store, open_store, read_only
from equipoise_server.storage.tables.identity import identities
from equipoise_server.storage.tables.ledger import journal
from equipoise_server.storage.tables.metadata import metadata
from equipoise_server.storage.tables.round import dataset_versions, datasets, result_chunks, rounds, runs, shares
from equipoise_server.storage.tables.session import asked


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = open_store(store_url)
    yield store
    store.close()


def add(store: Store, name: str) -> None:
    with store.write() as connection:
        connection.execute(identities.insert().values(name=name, role="analyst", created=0))


def names(store: Store) -> list[str]:
    with store.read() as connection:
        return list(connection.execute(select(identities.c.name).order_by(identities.c.name)).scalars())


def test_migrations_build_the_tables_that_the_code_uses(store: Store) -> None:
    with store.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_migrations_hold_every_constraint_of_the_tables(store: Store) -> None:
    with store.read() as connection:
        for name, table in metadata.tables.items():
            built = {check["name"] for check in inspect(connection).get_check_constraints(name)}
            assert built == {each.name for each in table.constraints if isinstance(each, CheckConstraint)}


def test_what_was_committed_is_there_after_reopening(store_url: str) -> None:
    first = open_store(store_url)
    add(first, "a")
    first.close()
    second = open_store(store_url)
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


def test_a_store_opened_to_read_sees_what_is_committed_and_cannot_write(store: Store, store_url: str) -> None:
    with read_only(store_url) as reading:
        add(store, "a")
        with reading.read() as connection:
            assert connection.execute(select(identities.c.name)).scalars().all() == ["a"]
        with pytest.raises(Unavailable), reading.read() as connection:
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
    entry = dict.fromkeys(("time", "rho", "epsilon", "delta", "divergence"), 0)
    words = dict.fromkeys(("account", "round_id", "events"), "")
    with store.write() as connection:
        connection.execute(journal.insert().values(sequence=1, action="spend", digest=b"", **entry, **words))
    with pytest.raises(IntegrityError, match="append-only"), store.write() as connection:
        connection.execute(journal.update().values(rho=1))
    with pytest.raises(IntegrityError, match="append-only"), store.write() as connection:
        connection.execute(journal.delete())


def released_results(store: Store) -> None:
    """A released round with results of two analysts, of whom one was deleted, and a run that was cut off."""
    number = dict.fromkeys(("records", "universe_size", "open_time", "peak_memory_bytes"), 1)
    texts = dict.fromkeys(("terms", "plan", "abort_reason"), "")
    content = dict.fromkeys(("seed_commitment", "sealed_seed"), b"")
    round_row = {
        "id": "r",
        "dataset": "t",
        "dataset_version": 1,
        "state": "released",
        "release_time": 1,
        "run_id": "kept",
    }
    run = {"round_id": "r", "start_time": 1, "peak_memory_bytes": 1}
    with store.write() as connection:
        for name, deleted in (("ann", None), ("gone", 1)):
            row = {"name": name, "role": "analyst", "created": 0, "deleted": deleted}
            connection.execute(identities.insert().values(row))
        dataset = {"name": "t", "account": "t", "analyst_epsilon": 1.0, "analyst_delta": 0.0}
        version = {"dataset": "t", "version": 1, "source": "t.csv", "schema": "", "records": 1, "create_time": 1}
        version |= {"person": "", "person_mode": "rows", "person_records": 1}
        connection.execute(datasets.insert().values(dataset))
        connection.execute(dataset_versions.insert().values(version))
        connection.execute(rounds.insert().values(round_row | number | texts | content))
        for name in ("kept", "cut"):
            connection.execute(runs.insert().values(run | {"id": name}))
            for analyst in ("ann", "gone"):
                chunk = {"run_id": name, "analyst": analyst, "sequence": 1, "chunk": b"1"}
                connection.execute(result_chunks.insert().values(chunk))


def test_released_results_are_neither_changed_nor_removed_while_their_analyst_is_there(store: Store) -> None:
    released_results(store)
    for change in (result_chunks.update().values(chunk=b"2"), result_chunks.delete()):
        with pytest.raises(IntegrityError, match="append-only"), store.write() as connection:
            connection.execute(change)
    removable = (result_chunks.c.run_id == "cut") | (result_chunks.c.analyst == "gone")
    with store.write() as connection:
        assert connection.execute(result_chunks.delete().where(removable)).rowcount == 3
        left = connection.execute(select(result_chunks.c.run_id, result_chunks.c.analyst)).all()
    assert [tuple(row) for row in left] == [("kept", "ann")]


def test_answers_of_a_session_are_never_changed_and_not_removed_while_they_are_needed(store: Store) -> None:
    released_results(store)
    answer = dict.fromkeys(("statement", "chunk", "envelope", "chain"), b"1")
    place = dict.fromkeys(("sequence", "due_time", "cost"), 1)
    with store.write() as connection:
        for slot, analyst in enumerate(("ann", "gone")):
            size = dict.fromkeys(("statements", "queries", "sensitivity", "support", "ways"), 1)
            share = {"round_id": "r", "analyst": analyst, "position": slot}
            connection.execute(shares.insert().values(share | size))
            row = {"round_id": "r", "analyst": analyst, "slot": slot, **place, **answer}
            connection.execute(asked.insert().values(row))
    for change in (asked.update().values(chunk=b"2"), asked.delete().where(asked.c.analyst == "ann")):
        with pytest.raises(IntegrityError, match="append-only"), store.write() as connection:
            connection.execute(change)
    with store.write() as connection:
        connection.execute(asked.delete().where(asked.c.analyst == "gone"))
        assert connection.execute(select(asked.c.analyst, asked.c.chunk)).all() == [("ann", b"1")]


def test_a_newer_store_is_refused(store_url: str) -> None:
    open_store(store_url).close()
    change_directly(store_url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(InvalidArgument, match=r"store: was written by a newer version.*9999"):
        open_store(store_url)


def test_a_foreign_database_is_refused_and_left_alone(store_url: str) -> None:
    change_directly(store_url, "CREATE TABLE recipes (name TEXT)")
    with pytest.raises(InvalidArgument, match="store: must be an empty database, or one that Equipoise has made"):
        open_store(store_url)
    with create_engine(store_url, poolclass=NullPool).connect() as connection:
        assert inspect(connection).get_table_names() == ["recipes"]


@pytest.mark.parametrize(
    "wrong",
    [
        "nonsense",
        "sqlite://",
        "sqlite:///:memory:",
        "postgresql://host/x",
        "postgresql+psycopg://host",
        "mysql://h/x",
    ],
)
def test_urls_that_cannot_be_used_are_named(wrong: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^store: "):
        open_store(wrong)


def test_an_error_does_not_quote_what_was_to_be_stored(store: Store) -> None:
    add(store, "chartreuse")
    with pytest.raises(IntegrityError) as raised:
        add(store, "chartreuse")
    statement = str(raised.value).partition("[SQL:")[2]
    assert "INSERT" in statement
    assert "chartreuse" not in statement
