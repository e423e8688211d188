"""What the store tells of one analyst in a session: of nobody else's statements, and of no other session."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, create_engine

from equipoise_server.sessions import answer_store
from equipoise_server.sessions.answer_store import StoredAnswer
from equipoise_server.storage.tables import metadata

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TURN = timedelta(seconds=10)


def stored(analyst: str, sequence: int, slot: int, statement: bytes) -> StoredAnswer:
    """The answer to a statement, which is due as many turns after the first as its number says."""
    return StoredAnswer(analyst, sequence, slot, NOW + sequence * TURN, statement, b"", b"", b"c", sequence)


ANNS = [stored("ann", 1, 0, b"abc"), stored("ann", 2, 2, b"de")]
BOBS = [stored("bob", 1, 1, b"a long one"), stored("bob", 2, 3, b"another"), stored("bob", 3, 4, b"more")]
ELSEWHERE = [stored("ann", 1, 0, b"in another session"), stored("ann", 2, 1, b"x"), stored("ann", 3, 9, b"y")]


@pytest.fixture
def connection() -> Iterator[Connection]:
    """Of tables in memory, in which rows may stand alone."""
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    with engine.connect() as connection:
        answer_store.insert(connection, "one", 0, [*ANNS, *BOBS])
        answer_store.insert(connection, "other", 0, ELSEWHERE)
        yield connection
    engine.dispose()


def test_the_size_of_an_analysts_statements_depends_on_nobody_elses(connection: Connection) -> None:
    assert answer_store.size_of(connection, "one", "ann") == 5
    assert answer_store.size_of(connection, "other", "ann") == 20
    assert answer_store.size_of(connection, "one", "cyd") == 0


def test_an_analyst_is_told_its_own_answers_of_this_session(connection: Connection) -> None:
    assert answer_store.due_after(connection, "one", "ann", 0, 9) == ANNS
    assert answer_store.due_after(connection, "one", "bob", 1, 1) == BOBS[1:2]
    assert answer_store.last_of(connection, "one", "ann") == ANNS[-1]
    assert answer_store.last_of(connection, "one", "cyd") is None
    assert answer_store.answer_to(connection, "one", "bob", 1) == BOBS[0]
    assert answer_store.answer_to(connection, "one", "ann", 3) is None


def test_answers_are_told_from_the_instant_on_at_which_they_are_due(connection: Connection) -> None:
    before = NOW + 2 * TURN - timedelta(microseconds=1)
    assert answer_store.due_after(connection, "one", "bob", 0, 9, before) == BOBS[:1]
    assert answer_store.due_after(connection, "one", "bob", 0, 9, NOW + 2 * TURN) == BOBS[:2]
    assert answer_store.count_due(connection, "one", "bob", before) == 1
    assert answer_store.count_due(connection, "one", "ann", None) == 2
    assert answer_store.count_due(connection, "one", "cyd", None) == 0


def test_the_salt_that_came_first_stays_and_is_each_analysts_own(connection: Connection) -> None:
    assert answer_store.keep_salt(connection, "one", "ann", b"first") == b"first"
    assert answer_store.keep_salt(connection, "one", "ann", b"second") == b"first"
    assert answer_store.keep_salt(connection, "one", "bob", b"bob's") == b"bob's"
    assert answer_store.keep_salt(connection, "other", "ann", b"third") == b"third"
    assert answer_store.salt_in_force(connection, "one", "ann") == b"first"
    assert answer_store.salt_in_force(connection, "one", "cyd") is None
