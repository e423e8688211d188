"""Remembered requests: the first answer again, never another request under the same id."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, func, select

from equipoise.errors import AlreadyExists, InvalidArgument
from equipoise_server.storage.idempotency import (
    LAST_TIME,
    MAX_REQUESTS,
    REQUEST_LIFE,
    Request,
    count_requests,
    forget_caller,
    forget_until,
    last_time,
    make_request,
    outlived,
    store_response,
    stored_response,
)
from equipoise_server.storage.store import Store, open_store
from equipoise_server.storage.tables.identity import callers, requests

NOW = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = open_store(store_url)
    yield store
    store.close()


def keep(store: Store, request: Request, answer: str) -> None:
    with store.write() as connection:
        store_response(connection, request, answer, NOW)


def look_up(store: Store, request: Request) -> str | None:
    with store.read() as connection:
        return stored_response(connection, request)


def test_a_new_request_has_no_answer(store: Store) -> None:
    assert look_up(store, make_request("ann", "1", "open", "terms")) is None


def test_the_same_request_gets_the_first_answer(store: Store) -> None:
    keep(store, make_request("ann", "1", "open", "terms"), "first")
    assert look_up(store, make_request("ann", "1", "open", "terms")) == "first"


@pytest.mark.parametrize(
    "other",
    [
        make_request("ann", "1", "open", "other terms"),
        make_request("ann", "1", "seal", "terms"),
        make_request("ann", "1", "open", "term", "s"),
    ],
)
def test_other_content_is_refused(store: Store, other: Request) -> None:
    keep(store, make_request("ann", "1", "open", "terms"), "first")
    with pytest.raises(AlreadyExists):
        look_up(store, other)


def test_callers_do_not_share_ids(store: Store) -> None:
    keep(store, make_request("ann", "1", "open", "terms"), "first")
    assert look_up(store, make_request("bob", "1", "open", "other terms")) is None


@pytest.mark.parametrize("wrong", ["", "x" * 129])
def test_ids_have_a_length(wrong: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^request_id: "):
        make_request("ann", wrong, "open")


def kept(store: Store, caller: str) -> int:
    with store.read() as connection:
        own = select(func.count()).where(requests.c.caller == caller)
        return int(connection.execute(own.select_from(requests)).scalar_one())


@pytest.mark.full
def test_a_caller_s_newest_requests_are_kept_and_no_more(store: Store) -> None:
    more = 25
    keep(store, make_request("bob", "0", "open"), "bob's")
    with store.write() as connection:
        for number in range(MAX_REQUESTS + more):
            store_response(connection, make_request("ann", str(number), "open"), str(number), NOW)
    assert (kept(store, "ann"), kept(store, "bob")) == (MAX_REQUESTS, 1)
    assert look_up(store, make_request("ann", str(more - 1), "open")) is None
    assert look_up(store, make_request("ann", str(more), "open")) == str(more)
    assert look_up(store, make_request("bob", "0", "open")) == "bob's"
    # The rollback guard counts what was carried out, whatever is forgotten of it.
    with store.read() as connection:
        assert count_requests(connection) == MAX_REQUESTS + more + 1


def test_requests_are_known_for_as_long_as_is_promised() -> None:
    assert (1000, timedelta(days=7)) == (MAX_REQUESTS, REQUEST_LIFE)


def test_requests_are_forgotten_after_their_life(store: Store) -> None:
    with store.write() as connection:
        for day in range(10):
            request = make_request(f"caller {day % 2}", str(day), "open")
            store_response(connection, request, "", NOW + timedelta(days=day))
    with store.write() as connection:
        assert outlived(connection, NOW + REQUEST_LIFE) is None
        assert outlived(connection, NOW + REQUEST_LIFE + timedelta(days=2, hours=1)) == NOW + timedelta(days=2)
        forget_until(connection, NOW + timedelta(days=2))
        assert outlived(connection, NOW + REQUEST_LIFE + timedelta(days=2, hours=1)) is None
        times = connection.execute(select(requests.c.request_id).order_by(requests.c.time)).scalars().all()
        assert times == [str(day) for day in range(3, 10)]
        # The number and the last time of a caller outlive its requests.
        forget_caller(connection, "caller 1")
        assert last_time(connection, "caller 1") == NOW + timedelta(days=9)
        assert last_time(connection, "nobody") is None
        assert count_requests(connection) == 10


def test_the_last_time_stays_where_the_clock_is_set_back(store: Store) -> None:
    for hours in (0, 5, -3):
        with store.write() as connection:
            request = make_request("ann", str(hours), "open")
            store_response(connection, request, "", NOW + timedelta(hours=hours))
    with store.read() as connection:
        assert last_time(connection, "ann") == NOW + timedelta(hours=5)


def test_an_answer_is_kept_by_statements_that_read_no_other_callers_rows(tmp_path: Path) -> None:
    """Each statement finds its rows by a key. So one caller's requests never make another's slower."""
    store = open_store(f"sqlite:///{tmp_path / 'equipoise.db'}")
    statements: list[tuple[str, Any]] = []
    with store.write() as connection:
        event.listen(
            connection, "before_cursor_execute", lambda _, __, sql, values, *___: statements.append((sql, values))
        )
        for number in ("1", "2"):
            request = make_request("ann", number, "open")
            assert stored_response(connection, request) is None
            last_time(connection, "ann")
            store_response(connection, request, "", NOW)
        last_time(connection, "ann")
        outlived(connection, NOW)
    searched = [(sql, values) for sql, values in statements if not sql.startswith("INSERT")]
    assert len(searched) == 11
    with store.read() as connection:
        for sql, values in searched:
            steps = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)]
            assert not any(step.startswith("SCAN requests") or step.startswith("SCAN callers") for step in steps), (
                sql
            )
        assert connection.execute(LAST_TIME, {"name": "ann"}).all() == [(1_704_067_200_000_000,)]
        assert connection.execute(select(callers.c.caller, callers.c.requests)).all() == [("ann", 2)]
    store.close()
