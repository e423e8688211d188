"""Sessions by turns: the clock alone decides when anything is answered, and no turn is late."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from harness.answers import flat_chunks
from harness.rounds_bench import COLOUR, SIZE, Bench
from harness.session_terms import ASKED, BY_TURNS, ONLINE, answered, attached
from harness.waiting import PATIENCE, until

from equipoise.errors import AlreadyExists, InvalidArgument, WrongState
from equipoise.model.rounds import RoundState, SessionTerms
from equipoise.model.times import to_microseconds
from equipoise.profile.receipt_store import read_session_receipt
from equipoise.queries.predicates import AllOf
from equipoise.queries.statements import Statement
from equipoise.wire.results import answers_from_chunk, chunk_from_bytes
from equipoise.wire.statements import statement_to_bytes
from equipoise_server.sessions.answer_store import StoredAnswer
from equipoise_server.sessions.attachments import Attachment
from equipoise_server.sessions.open_session import OpenSession
from equipoise_server.workers.session_process import SessionProcess

DATA = "data/shop"


@pytest.mark.full
def test_turns_alone_say_when_anything_is_answered(on_sqlite: Bench) -> None:
    bench, begin = on_sqlite, on_sqlite.clock.now
    close_time = begin + timedelta(seconds=64)
    opened = bench.sessions.open(replace(BY_TURNS, close_time=close_time), "open")
    assert opened.terms.close_time == begin + timedelta(seconds=60)  # where a turn ends
    session_id = opened.id
    # Before anybody attaches, so that nobody's first answer is the later for it.
    assert bench.sessions.loops.process_id(session_id) is not None
    charged = bench.charged()
    assert set(charged) == {DATA, "analyst/shop/query/ann", "analyst/shop/query/bob"}
    assert all(spent == 0 < held for spent, held in charged.values())

    ann, bob = (attached(bench, name, session_id) for name in ("ann", "bob"))
    asked_first = [ann.ask(i, statement_to_bytes(each)) for i, each in enumerate(ASKED["ann"][:2], start=1)]
    bobs = bob.ask(1, statement_to_bytes(ASKED["bob"][0]))
    bench.clock.move(10)
    until(lambda: len(answered(bench)) == 2)
    # They are stored, but it is not time: nobody sees when they were.
    assert not any(each.done() for each in (*asked_first, bobs))
    assert ann.stored(0, 10) == []
    assert attached(bench, "bob", session_id).answered == 0
    bench.clock.move(10)
    first = asked_first[0].result(PATIENCE)
    assert (first.slot, bobs.result(PATIENCE).slot) == (0, 1)
    assert read_session_receipt(first.envelope).time == to_microseconds(begin + timedelta(seconds=20))
    until(lambda: len(answered(bench)) == 3)

    bench.restart()
    bench.sessions.loops.look_after()
    assert bench.sessions.loops.process_id(session_id) is not None
    ann = attached(bench, "ann", session_id)
    assert ann.answered == 1
    with pytest.raises(AlreadyExists):
        ann.ask(2, statement_to_bytes(COLOUR == "green"))
    second = ann.ask(2, statement_to_bytes(ASKED["ann"][1]))
    assert not second.done()
    bench.clock.move(10)
    assert second.result(PATIENCE).slot == 2
    # What is still waiting when its stream is let go of was never asked.
    ann.ask(3, statement_to_bytes(COLOUR == "green"))
    ann.detach()
    assert ask_later(bench, attached(bench, "ann", session_id), 3, ASKED["ann"][2]).slot == 6
    assert bench.charged() == charged


def test_a_statement_that_its_part_of_a_turn_cannot_hold_is_refused_to_whoever_asks_and_seen_by_nobody(
    on_sqlite: Bench,
) -> None:
    """It could make the turn late, which everybody sees."""
    bench = on_sqlite
    session_id = bench.sessions.open(replace(BY_TURNS, session=SessionTerms(length=6, turn_seconds=1)), "open").id
    charged = bench.charged()
    ann, bob = (attached(bench, name, session_id) for name in ("ann", "bob"))
    bobs = bob.ask(1, statement_to_bytes(ASKED["bob"][0]))
    either = (COLOUR == "red") | (SIZE == "s"), (COLOUR == "green") | (SIZE == "m")
    hard = statement_to_bytes(AllOf(either * 900))
    with pytest.raises(InvalidArgument, match=r"^statement: is [0-9,]+ units of work, .* hold 125,000 for each"):
        ann.ask(1, hard)
    anns = ann.ask(1, statement_to_bytes(ASKED["ann"][0]))
    bench.clock.move(1)
    until(lambda: len(answered(bench)) == 2)
    bench.clock.move(1)
    assert (anns.result(PATIENCE).slot, bobs.result(PATIENCE).slot) == (0, 1)
    assert bench.charged() == charged
    # Without turns there is nobody who could see it.
    at_once = bench.sessions.open(ONLINE, "open another").id
    assert attached(bench, "ann", at_once).ask(1, hard).result(PATIENCE).slot == 0


def test_turns_in_which_nobody_asks_are_processed_as_they_end(
    on_sqlite: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next answer would come the later the fewer have asked before, and others would see it."""
    bench, passed, pass_to = on_sqlite, list[int](), SessionProcess.pass_to

    def noted(process: SessionProcess, slot: int) -> None:
        pass_to(process, slot)
        passed.append(slot)

    monkeypatch.setattr(SessionProcess, "pass_to", noted)
    ann = attached(bench, "ann", bench.sessions.open(BY_TURNS, "open").id)
    bench.clock.move(10)
    until(lambda: passed == [2])
    asked = ann.ask(1, statement_to_bytes(ASKED["ann"][0]))
    bench.clock.move(10)
    until(lambda: len(answered(bench)) == 1)
    bench.clock.move(10)
    assert asked.result(PATIENCE).slot == 2
    until(lambda: passed == [2, 6])
    bench.clock.move(100)
    until(lambda: passed == [2, 6, 12])


def test_turns_that_end_before_a_prior_is_fitted_are_nobody_s(
    on_sqlite: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise whoever asked in them would make others wait for another turn."""
    fitted, ready, pass_to = threading.Event(), threading.Event(), SessionProcess.pass_to

    def passed(process: SessionProcess, slot: int) -> None:
        assert fitted.wait(PATIENCE)
        pass_to(process, slot)
        ready.set()

    def after_a_turn() -> bool:
        bench.clock.move(10)
        time.sleep(0.3)
        return len(answered(bench)) == 2

    monkeypatch.setattr(OpenSession, "begins_late", True)
    monkeypatch.setattr(SessionProcess, "pass_to", passed)
    bench = on_sqlite
    session_id = bench.sessions.open(replace(BY_TURNS, session=SessionTerms(1000, 10)), "open").id
    ann, bob = (attached(bench, name, session_id) for name in ("ann", "bob"))
    anns = ann.ask(1, statement_to_bytes(ASKED["ann"][0]))
    bench.clock.move(21)
    bobs = bob.ask(1, statement_to_bytes(ASKED["bob"][0]))
    fitted.set()
    assert ready.wait(PATIENCE)
    time.sleep(0.5)  # in which a statement of the first turn would be answered
    assert answered(bench) == []
    until(after_a_turn)
    bench.clock.move(10)
    # Both are of one turn, the third or a later one.
    slot = anns.result(PATIENCE).slot
    assert slot >= 4
    assert bobs.result(PATIENCE).slot == slot + 1


def ask_later(bench: Bench, stream: Attachment, sequence: int, statement: Statement) -> StoredAnswer:
    """Ask in this turn, and let time pass until the answer is due."""
    known = len(answered(bench))
    asked = stream.ask(sequence, statement_to_bytes(statement))
    bench.clock.move(10)
    until(lambda: len(answered(bench)) > known)
    bench.clock.move(10)
    return asked.result(PATIENCE)


@pytest.mark.full
def test_the_last_turn_is_answered_before_a_session_is_sealed_by_itself(on_sqlite: Bench) -> None:
    bench = on_sqlite
    session_id = bench.sessions.open(BY_TURNS, "open").id
    charged = bench.charged()
    ann, bob = (attached(bench, name, session_id) for name in ("ann", "bob"))
    ask_later(bench, bob, 1, ASKED["bob"][0])
    bench.clock.move(30)
    last = ann.ask(1, statement_to_bytes(ASKED["ann"][2]))
    too_late = ann.ask(2, statement_to_bytes(COLOUR == "green"))
    bench.clock.move(10)
    with pytest.raises(WrongState, match="takes no more statements"):
        ann.ask(3, statement_to_bytes(COLOUR == "green"))
    until(lambda: len(answered(bench)) == 2)
    bench.rounds.schedule.keep()
    assert bench.state(session_id) is RoundState.OPEN
    bench.clock.move(10)
    assert last.result(PATIENCE).slot == 10
    with pytest.raises(WrongState, match="takes no more statements"):
        too_late.result(PATIENCE)
    again = {name: attached(bench, name, session_id) for name in ("ann", "bob")}
    told = {name: stream.stored(0, 10) for name, stream in again.items()}
    for state in (RoundState.SEALED, RoundState.RUNNING):
        bench.rounds.schedule.keep()
        assert bench.state(session_id) is state
    bench.sessions.loops.look_after()
    assert again["ann"].ended.result(PATIENCE) is None
    assert bench.wait(session_id).complete
    bench.rounds.schedule.keep()
    bench.clock.move(60)
    for name, records in told.items():
        released = [chunk_from_bytes(each) for each in bench.rounds.analyst_views.results(name, session_id, 0, 10)]
        assert flat_chunks([answers_from_chunk(record.chunk) for record in records]) == flat_chunks(released)
    assert bench.charged() == {account: (held, held) for account, (_, held) in charged.items()}
