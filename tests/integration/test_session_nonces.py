"""An auditor's part of a session's randomness: taken until the first answer, and in whatever is answered then."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness.audited_rounds import audited
from harness.rounds_bench import Bench
from harness.session_terms import (
    ASKED,
    BY_TURNS,
    ONLINE,
    answered,
    ask,
    ask_all,
    ask_by_turns,
    attached,
    release,
)
from harness.waiting import PATIENCE

from equipoise.errors import AlreadyExists, Unavailable, WrongState
from equipoise.model.rounds import SessionTerms
from equipoise.records.items import SealItem
from equipoise.wire.results import answers_from_chunk
from equipoise.wire.statements import statement_to_bytes
from equipoise_server.sessions.answer_store import StoredAnswer

NONCE, OTHER = b"n" * 32, b"o" * 32
STATEMENT = ASKED["ann"][0]


@pytest.fixture
def bench(on_sqlite: Bench) -> Bench:
    return on_sqlite


def opened(bench: Bench, name: str, nonce: bytes | None = None) -> str:
    session_id = bench.sessions.open(ONLINE, name).id
    if nonce is not None:
        bench.rounds.seeds.set_nonce(session_id, nonce, f"nonce {name}", "auditor")
    return session_id


def values(answer: StoredAnswer) -> list[int]:
    return [int(each) for each in answers_from_chunk(answer.chunk).answers.values]


def all_values(bench: Bench, session_id: str) -> list[list[int]]:
    return [values(answer) for told in ask_all(bench, session_id).values() for answer in told]


def test_a_nonce_enters_what_is_answered_and_what_is_recorded(bench: Bench) -> None:
    """All sessions of this bench have one seed, so that only the nonce can make the difference."""
    without, again, under, other = (
        opened(bench, name, nonce)
        for name, nonce in (("without", None), ("again", None), ("under", NONCE), ("other", OTHER))
    )
    told = {each: all_values(bench, each) for each in (without, again, under, other)}
    assert told[without] == told[again]
    assert len({str(each) for each in told.values()}) == 3
    # The run that is released computes every answer again, and refuses others.
    release(bench, [without, under])
    recorded = audited(bench).recorded
    assert recorded is not None
    sealed = {each: recorded.rounds[each].sealed for each in (without, under)}
    assert [step.one(SealItem).nonce for step in sealed.values() if step] == [None, NONCE]


def test_a_nonce_is_taken_until_the_first_answer_only(bench: Bench) -> None:
    session_id = opened(bench, "one", NONCE)
    stream = attached(bench, "ann", session_id)
    with pytest.raises(AlreadyExists):
        bench.rounds.seeds.set_nonce(session_id, OTHER, "2", "auditor")
    ask(stream, 1, STATEMENT)
    bench.rounds.seeds.set_nonce(session_id, NONCE, "3", "auditor")
    late = opened(bench, "late")
    ask(attached(bench, "ann", late), 1, STATEMENT)
    with pytest.raises(WrongState, match="only until its first answer"):
        bench.rounds.seeds.set_nonce(late, NONCE, "4", "auditor")


def test_nothing_is_told_that_was_drawn_before_the_nonce_was_there(bench: Bench) -> None:
    """Also of a worker that was started before; and whoever is attached is told nothing by when that is noticed."""
    expected = values(ask(attached(bench, "ann", opened(bench, "before", NONCE)), 1, STATEMENT))
    session_id = opened(bench, "after")
    ann, bob = (attached(bench, analyst, session_id) for analyst in ("ann", "bob"))
    bench.rounds.seeds.set_nonce(session_id, NONCE, "nonce", "auditor")
    before = len(answered(bench))
    waiting = ann.ask(1, statement_to_bytes(STATEMENT))
    with pytest.raises(TimeoutError):
        waiting.result(2)
    assert not bob.ended.done()
    bench.sessions.loops.look_after()
    for ended in (waiting, ann.ended, bob.ended):
        with pytest.raises(Unavailable):
            ended.result(PATIENCE)
    assert len(answered(bench)) == before
    assert values(ask(attached(bench, "ann", session_id), 1, STATEMENT)) == expected


@pytest.mark.full
def test_a_session_by_turns_goes_on_under_the_nonce_whether_or_not_anybody_asks(bench: Bench) -> None:
    terms = replace(BY_TURNS, session=SessionTerms(length=2000, turn_seconds=10))
    session_id = bench.sessions.open(terms, "turns").id
    bench.sessions.loops.look_after()
    first = bench.sessions.loops.process_id(session_id)
    bench.sessions.loops.look_after()
    assert bench.sessions.loops.process_id(session_id) == first is not None
    bench.rounds.seeds.set_nonce(session_id, NONCE, "nonce", "auditor")
    bench.sessions.loops.look_after()
    assert bench.sessions.loops.process_id(session_id) not in (first, None)
    ask_by_turns(bench, {session_id: ASKED})
    release(bench, [session_id])
