"""What a share allows: as many statements, queries and bytes as it says, with those that still wait."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from equipoise.errors import BudgetExhausted, TooLarge
from equipoise.model.rounds import Share
from equipoise_server.sessions import pending_statements
from equipoise_server.sessions.answer_store import StoredAnswer
from equipoise_server.sessions.pending_statements import AnalystProgress, PendingStatement, PendingStatements

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def asking(*, statements: int = 9, queries: int = 99) -> tuple[PendingStatements, AnalystProgress]:
    """A session, and the progress of an analyst in it who has asked nothing."""
    pending, own = PendingStatements(), AnalystProgress(Share("ann", statements, queries), 0, 0, 0, bytes(32))
    pending.attach(own)
    return pending, own


def wait(pending: PendingStatements, own: AnalystProgress, sequence: int) -> None:
    """A statement of 3 bytes and 2 queries waits to be taken."""
    pending.add(own, PendingStatement("ann", 0, sequence, b"abc", 2, NOW))


def store(own: AnalystProgress, sequence: int) -> None:
    """Such a statement was answered; it is not delivered yet."""
    own.advance(StoredAnswer("ann", sequence, sequence, NOW, b"abc", b"", b"", b"c" * 32), 2)


def test_a_share_of_two_statements_allows_two_stored_or_not() -> None:
    pending, own = asking(statements=2)
    own.check_room(1, 1)
    wait(pending, own, 1)
    own.check_room(1, 1)
    wait(pending, own, 2)
    with pytest.raises(BudgetExhausted, match="allows 2 statements, and all were asked"):
        own.check_room(1, 1)
    store(own, 1)
    store(own, 2)
    with pytest.raises(BudgetExhausted, match="allows 2 statements, and all were asked"):
        own.check_room(1, 1)


def test_statements_that_wait_take_their_bytes_at_once_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_statements, "MAX_BYTES", 10)
    pending, own = asking()
    wait(pending, own, 1)
    wait(pending, own, 2)
    own.check_room(1, 4)
    with pytest.raises(TooLarge, match="larger than 10 bytes"):
        own.check_room(1, 5)
    store(own, 1)  # what is stored and waits to be delivered counts once
    own.check_room(1, 4)
    with pytest.raises(TooLarge, match="larger than 10 bytes"):
        own.check_room(1, 5)
