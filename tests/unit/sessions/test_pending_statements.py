"""What waits in an open session: one stream an analyst, statements in their order, and who hears of their end."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import UTC, datetime

import pytest

from equipoise.errors import AlreadyExists, BudgetExhausted, OutOfRange, TooLarge, Unavailable, WrongState
from equipoise.model.rounds import Share
from equipoise_server.sessions import pending_statements
from equipoise_server.sessions.answer_store import StoredAnswer
from equipoise_server.sessions.pending_statements import AnalystProgress, PendingStatement, PendingStatements

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLACES = {"ann": 0, "bob": 1}


def progress(analyst: str) -> AnalystProgress:
    """Of an analyst that has asked nothing and may ask 3 statements of 10 cells together."""
    return AnalystProgress(Share(analyst, 3, 10), PLACES[analyst], 0, 0, bytes(32))


def wait(pending: PendingStatements, analyst: str, sequence: int) -> PendingStatement:
    """A statement of 2 cells that waits to be taken."""
    statement = PendingStatement(analyst, PLACES[analyst], sequence, b"s%d" % sequence, 2, NOW)
    pending.add(pending.progress(analyst), statement)
    return statement


def stored(sequence: int) -> StoredAnswer:
    """The answer to such a statement."""
    return StoredAnswer("ann", sequence, sequence, NOW, b"s%d" % sequence, b"", b"", b"c" * 32)


def test_only_the_newest_stream_of_an_analyst_asks() -> None:
    pending = PendingStatements()
    first = pending.attach(progress("ann"))
    others = pending.attach(progress("bob"))
    waits, bobs = wait(pending, "ann", 1), wait(pending, "bob", 1)
    second = pending.attach(progress("ann"))
    for ended in (first, waits.answer):
        with pytest.raises(WrongState, match="attached elsewhere"):
            ended.result(0)
    with pytest.raises(WrongState, match="attached elsewhere"):
        pending.attached("ann", first)
    assert pending.attached("ann", second).asked == 0
    pending.detach("ann", first)  # late, and not the one that is attached
    assert pending.attached("ann", second) is pending.progress("ann")
    assert pending.attached("bob", others).asked == 1
    assert pending.waiting == [bobs]


def test_a_stream_that_goes_forgets_what_was_not_taken_and_nothing_else() -> None:
    pending = PendingStatements()
    stream = pending.attach(progress("ann"))
    taken, left = wait(pending, "ann", 1), wait(pending, "ann", 2)
    pending.take([taken])
    pending.detach("ann", stream)
    assert stream.cancelled()
    assert left.answer.cancelled()
    assert not taken.answer.done()
    assert pending.progress("ann").waiting == {1: taken}
    assert not pending.in_use
    assert pending.unstored == 1


def test_an_analyst_keeps_its_progress_when_it_attaches_again() -> None:
    pending = PendingStatements()
    pending.attach(progress("ann"))
    pending.progress("ann").advance(stored(1), 2)
    again = pending.attach(progress("ann"))
    assert (pending.attached("ann", again).stored, pending.attached("ann", again).cells) == (1, 2)


def test_everybody_hears_of_the_end_alike() -> None:
    for problem in (None, Unavailable("later")):
        pending = PendingStatements()
        streams: list[Future[None]] = [pending.attach(progress(analyst)) for analyst in PLACES]
        taken, left = wait(pending, "ann", 1), wait(pending, "bob", 1)
        pending.take([taken])
        told = problem or WrongState("closed")
        pending.finish(told, problem)
        assert [taken.answer.exception(0), left.answer.exception(0)] == [told, told]
        assert [stream.exception(0) for stream in streams] == [problem, problem]
        assert not pending.in_use


def test_what_was_accepted_counts_before_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    pending = PendingStatements()
    pending.attach(progress("ann"))
    own = pending.progress("ann")
    waits = wait(pending, "ann", 1)
    assert own.known(1, b"s1") is waits
    with pytest.raises(AlreadyExists):
        own.known(1, b"another")
    with pytest.raises(OutOfRange, match="number 2"):
        own.known(3, b"s3")
    own.check_room(8, 1)
    with pytest.raises(BudgetExhausted, match="9 queries, your share allows 8"):
        own.check_room(9, 1)
    own.advance(stored(1), waits.cells)
    with pytest.raises(BudgetExhausted, match="9 queries, your share allows 8"):
        own.check_room(9, 1)
    monkeypatch.setattr(pending_statements, "MAX_BYTES", 3)
    own.check_room(1, 1)
    with pytest.raises(TooLarge, match="larger than 3 bytes"):
        own.check_room(1, 2)
