"""Operations: once, between two crash points, known to the guard before anything is answered."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from harness.stores import open_empty
from sqlalchemy import Connection, select

from equipoise.errors import AlreadyExists, Unavailable, WrongState
from equipoise_server.storage.crash_points import install_hook
from equipoise_server.storage.idempotency import make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.identity import identities, requests

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REQUEST = make_request("o", "1", "add_identity", "ann")


class Place:
    """A store whose operations, crash points and looks of the guard are put down in their order."""

    def __init__(self, store: Store) -> None:
        self.seen: list[str] = []
        self.now = NOW
        self.broken = False
        self.operations = Operations(store, lambda: self.now, self.remember)

    def remember(self) -> None:
        """Stand for the guard."""
        self.seen.append("guard")
        if self.broken:
            raise Unavailable("the guard cannot be written")

    def add(self, connection: Connection, now: datetime) -> str:
        """Add an identity, which can be done once."""
        self.seen.append("work")
        connection.execute(identities.insert().values(name="ann", role="analyst", created=0))
        return f"{now:%Y}"

    def names(self) -> list[str]:
        """The identities that there are."""
        with self.operations.store.read() as connection:
            return list(connection.execute(select(identities.c.name)).scalars())


@pytest.fixture
def place(store_url: str) -> Iterator[Place]:
    store = open_empty(store_url)
    place = Place(store)
    with install_hook(lambda point: place.seen.append(point.value)):
        yield place
    store.close()


def kept(_: Connection, text: str) -> str:
    return text


def test_a_request_is_carried_out_once_and_the_guard_knows_before_it_is_answered(place: Place) -> None:
    assert place.operations.answered(REQUEST, kept) is None
    assert place.operations.carry_out(REQUEST, place.add, kept) == "2026"
    assert place.seen == ["work", "add_identity written", "add_identity committed", "guard"]
    place.seen.clear()
    place.now += timedelta(days=400)
    assert place.operations.carry_out(REQUEST, place.add, kept) == "2026"
    assert place.seen == ["guard"]
    assert place.names() == ["ann"]
    with pytest.raises(AlreadyExists, match="request_id"):
        place.operations.carry_out(make_request("o", "1", "add_identity", "bob"), place.add, kept)


def test_what_the_guard_could_not_be_told_is_told_before_the_repeated_answer(place: Place) -> None:
    place.broken = True
    for _ in range(2):
        with pytest.raises(Unavailable):
            place.operations.carry_out(REQUEST, place.add, kept)
    assert place.names() == ["ann"]
    place.broken = False
    assert place.operations.carry_out(REQUEST, place.add, kept) == "2026"
    assert place.seen.count("work") == 1


def test_work_that_fails_leaves_nothing_and_its_request_may_come_again(place: Place) -> None:
    def fail(connection: Connection, now: datetime) -> str:
        place.add(connection, now)
        raise WrongState("not now")

    with pytest.raises(WrongState):
        place.operations.carry_out(REQUEST, fail, kept)
    assert (place.names(), place.seen) == ([], ["work"])
    assert place.operations.carry_out(REQUEST, place.add, kept) == "2026"


def test_an_operation_without_crash_points_cannot_commit(place: Place) -> None:
    with pytest.raises(ValueError, match="new_operation written"):
        place.operations.carry_out(make_request("o", "1", "new_operation"), place.add, kept)
    assert place.names() == []


def test_accepted_requests_have_times_of_their_own_and_the_guard_catches_up(place: Place) -> None:
    for number in range(3):
        place.operations.accept(make_request("analyst/a", str(number), "submit"), lambda *_: "", kept)
        place.now -= timedelta(hours=1)
    with place.operations.store.read() as connection:
        times = connection.execute(select(requests.c.time).order_by(requests.c.request_id)).scalars().all()
    assert [time - times[0] for time in times] == [0, 1, 2]
    assert "guard" not in place.seen
    place.operations.catch_up()
    place.operations.catch_up()
    assert place.seen.count("guard") == 1
