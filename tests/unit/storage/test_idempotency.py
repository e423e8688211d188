"""Remembered requests: the first answer again, never another request under the same id."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from equipoise.errors import AlreadyExists, InvalidArgument
from equipoise_server.storage.idempotency import Request, first_answer, keep_answer, make_request
from equipoise_server.storage.store import Store, open_store

NOW = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = open_store(store_url)
    yield store
    store.close()


def keep(store: Store, request: Request, answer: str) -> None:
    with store.write() as connection:
        keep_answer(connection, request, answer, NOW)


def look_up(store: Store, request: Request) -> str | None:
    with store.read() as connection:
        return first_answer(connection, request)


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
