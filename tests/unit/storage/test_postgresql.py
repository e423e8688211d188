"""PostgreSQL as the store: durable settings, turns and isolation, and what it refuses to open."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from harness.stores import Cluster, change_directly, cluster
from harness.waiting import PATIENCE
from sqlalchemy import Connection, func, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import IntegrityError

from equipoise.errors import InvalidArgument, Unavailable
from equipoise_server.storage import postgresql as policy
from equipoise_server.storage.append_only import APPEND_ONLY
from equipoise_server.storage.store import Store, hold, hold_exclusively, open_store, read_only
from equipoise_server.storage.tables.identity import identities


@pytest.fixture
def url(postgresql: Cluster) -> Iterator[str]:
    url = postgresql.create()
    yield url
    postgresql.drop(url)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = open_store(url)
    yield store
    store.close()


def count_and_add(store: Store, meeting: threading.Barrier | None = None) -> None:
    """Reads how many there are, and adds one under that number: two at once would collide."""
    with store.write() as connection:
        seen = connection.execute(select(func.count()).select_from(identities)).scalar_one()
        if meeting is not None:
            meeting.wait(PATIENCE)
        connection.execute(identities.insert().values(name=f"{seen:03}", role="analyst", created=0))


def shown(connection: Connection, *names: str) -> list[str]:
    return [str(connection.exec_driver_sql(f"SHOW {name}").scalar()) for name in names]


def test_durability_is_what_was_asked_for(store: Store) -> None:
    with store.write() as connection:
        assert shown(connection, "fsync", "synchronous_commit", "lock_timeout") == ["on", "on", "15s"]
        assert shown(connection, "transaction_isolation", "transaction_read_only") == ["repeatable read", "off"]
    with store.read() as connection:
        assert shown(connection, "transaction_isolation", "transaction_read_only") == ["repeatable read", "on"]


def test_a_database_that_commits_carelessly_is_overruled(url: str) -> None:
    change_directly(url, f"ALTER DATABASE {make_url(url).database} SET synchronous_commit = off")
    store = open_store(url)
    with store.write() as connection:
        assert shown(connection, "synchronous_commit") == ["on"]
    store.close()


@pytest.mark.slow
def test_a_database_that_does_not_sync_is_refused() -> None:
    refused = pytest.raises(InvalidArgument, match="store: the database runs with fsync = off")
    with cluster("fsync=off") as careless, refused:
        open_store(careless.create())


@pytest.mark.parametrize("settings", ["ENCODING 'SQL_ASCII' LOCALE 'C'", "ENCODING 'LATIN1' LOCALE 'C'"])
def test_a_database_that_cannot_hold_every_text_is_refused(postgresql: Cluster, settings: str) -> None:
    url = postgresql.create(f"TEMPLATE template0 {settings}")
    with pytest.raises(InvalidArgument, match="store: the database must hold UTF-8 and order by bytes"):
        open_store(url)
    postgresql.drop(url)


def test_a_database_that_orders_by_a_language_is_refused(postgresql: Cluster) -> None:
    url = postgresql.create("TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C'")
    with pytest.raises(InvalidArgument, match="ENCODING 'UTF8' LOCALE 'C'"):
        open_store(url)
    postgresql.drop(url)


def test_servers_that_start_at_once_make_one_store(url: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(open_store, [url] * 6))
    for store in stores:
        count_and_add(store)
    with stores[0].read() as connection:
        assert connection.execute(select(func.count()).select_from(identities)).scalar() == 6
    for store in stores:
        store.close()


def test_writers_of_several_servers_take_turns(url: str) -> None:
    stores = [open_store(url) for _ in range(4)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(count_and_add, stores * 10))
    with stores[0].read() as connection:
        names = list(connection.execute(select(identities.c.name).order_by(identities.c.name)).scalars())
    assert names == [f"{count:03}" for count in range(40)]
    for store in stores:
        store.close()


def test_without_turns_the_database_itself_refuses_one_of_two(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(url).close()
    monkeypatch.setattr(policy, "_TURN", "SELECT 1")
    stores = [open_store(url) for _ in range(2)]
    meeting = threading.Barrier(2)
    refused: list[Exception] = []

    def attempt(store: Store) -> None:
        try:
            count_and_add(store, meeting)
        except (Unavailable, IntegrityError) as error:
            refused.append(error)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(attempt, stores))
    assert len(refused) == 1
    with stores[0].read() as connection:
        assert connection.execute(select(func.count()).select_from(identities)).scalar() == 1
    for store in stores:
        store.close()


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_whole_append_only_tables_cannot_be_emptied(store: Store, table: str) -> None:
    with pytest.raises(IntegrityError, match="append-only"), store.write() as connection:
        connection.execute(text(f"TRUNCATE {table}"))


def test_a_restarted_database_is_found_again(url: str, store: Store) -> None:
    count_and_add(store)
    change_directly(
        url, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )  # fmt: skip
    count_and_add(store)
    with store.read() as connection:
        assert connection.execute(select(func.count()).select_from(identities)).scalar() == 2


def test_a_server_that_is_cut_off_in_the_middle_has_written_nothing(url: str, store: Store) -> None:
    def cut_off() -> None:
        with store.write() as connection:
            connection.execute(identities.insert().values(name="a", role="analyst", created=0))
            own = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            change_directly(url, f"SELECT pg_terminate_backend({own}, 10000)")

    with pytest.raises(Unavailable, match="the store is out of order now"):
        cut_off()
    with store.read() as connection:
        assert connection.execute(select(func.count()).select_from(identities)).scalar() == 0


def test_what_does_not_answer_is_said_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "secret")
    with pytest.raises(Unavailable, match="the store cannot be reached: ") as refused:
        open_store("postgresql+psycopg://ann@/x?host=/nowhere")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("hots=/run", "has an option 'hots' that PostgreSQL does not know; did you mean 'host'?"),
        ("autocommit=hunter2", "has an option 'autocommit' that PostgreSQL does not know"),
        ("passwrd=hunter2", "has an option 'passwrd' that PostgreSQL does not know"),
        ("sslmode=disable&sslmode=hunter2", "has the option 'sslmode' more than once"),
    ],
)
def test_options_that_nobody_knows_are_refused_without_their_values(options: str, problem: str) -> None:
    url = f"postgresql+psycopg://ann@/x?host=/nowhere&{options}"
    for use in (open_store, lambda url: read_only(url).__enter__(), lambda url: hold(url).__enter__()):
        with pytest.raises(InvalidArgument) as refused:
            use(url)
        assert (refused.value.field, refused.value.problem) == ("store", problem)


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "psycopg":
            raise ModuleNotFoundError(name)
        return imported(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InvalidArgument, match=r"pip install 'equipoise\[server,postgres\]'"):
        open_store("postgresql+psycopg:///x")


def test_several_servers_hold_one_store_and_a_repair_holds_it_alone(url: str) -> None:
    with (
        hold(url),
        hold(url),
        pytest.raises(InvalidArgument, match="store: is in use: stop the server"),
        hold_exclusively(url),
    ):
        pass
    with hold_exclusively(url):
        for opening in (hold, hold_exclusively):
            with pytest.raises(InvalidArgument, match=r"^store: is "), opening(url):
                pass
    with hold(url):
        pass


def test_a_repair_waits_for_nobody_who_is_connected(url: str, store: Store) -> None:
    count_and_add(store)
    with pytest.raises(InvalidArgument, match="is in use"), hold_exclusively(url):
        pass
    store.close()
    with hold_exclusively(url):
        again = open_store(url)
        count_and_add(again)
        again.close()
