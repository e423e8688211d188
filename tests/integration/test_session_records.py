"""What is on record of sessions of every mechanism: for their analysts, for auditors, and to be replayed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from harness import page_reader
from harness.audited_rounds import audited, problems
from harness.released_rounds import SESSION_CHECKS, Change, Released, fails, measured_wrongly, sql, state_directory
from harness.rounds_bench import Bench
from harness.session_terms import (
    ASKED,
    BY_TURNS,
    BY_TURNS_AMONG,
    BY_TURNS_FROM_PRIOR,
    COUNTED,
    ONLINE,
    TOLD,
    ask,
    ask_all,
    ask_by_turns,
    attached,
    release,
)
from sqlalchemy import select

from equipoise.auditing.verify import Audit
from equipoise.model.accounts import Budget
from equipoise.model.rounds import SessionTerms
from equipoise.profile.receipt_store import read_session_receipt
from equipoise.queries.session_workload import SessionWorkload
from equipoise.queries.statements import Statement
from equipoise.records.bundle import Bundle
from equipoise.records.evidence import Evidence
from equipoise.records.receipts import SESSION_RECEIPT_TYPE
from equipoise.records.sealed_seeds import seal_to
from equipoise.records.signed_notes import VerifierKey
from equipoise.verification.checks import Check, CheckFailed, VerifierInputs, verify
from equipoise.wire.outline import asked_from_bytes, asked_to_bytes
from equipoise.wire.results import answers_from_chunk, answers_to_chunk
from equipoise_server.mechanisms.prior import known_answers
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.replay.differences import Differs
from equipoise_server.replay.session import check_none_left_out
from equipoise_server.rounds.store.results import read_synopsis
from equipoise_server.sessions import answer_store
from equipoise_server.storage.tables.session import asked

SESSIONS = {"online": 15, "online_private": 15, "low_sensitivity": 3, "low_sensitivity, prior": 3}  # queries of all
LONG = SessionTerms(length=2000, turn_seconds=10)


@dataclass(frozen=True)
class Held:
    """Sessions that were held: what is in their state directory, and what analysts and auditors were given.

    `bundles` and `receipts`, the envelopes that came with the answers, by session and analyst. `lies`: receipts of
    other answers that the custodian could have told ann in `online`.
    """

    released: Released
    bundles: dict[str, dict[str, Bundle]]
    receipts: dict[str, dict[str, list[bytes]]]
    audit: Audit
    trusted: list[VerifierKey]
    lies: list[bytes]


def asked_in(name: str) -> dict[str, list[Statement]]:
    """What is asked in the session of this name."""
    return {"low_sensitivity": COUNTED, "low_sensitivity, prior": TOLD}.get(name, ASKED)


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Held:
    with state_directory(tmp_path_factory.mktemp("sessions")) as (bench, key):
        by_turns = {
            "online_private": BY_TURNS,
            "low_sensitivity": BY_TURNS_AMONG,
            "low_sensitivity, prior": BY_TURNS_FROM_PRIOR,
        }
        terms = {"online": ONLINE} | {name: replace(each, session=LONG) for name, each in by_turns.items()}
        rounds = {name: bench.sessions.open(each, name).id for name, each in terms.items()}
        short = replace(ONLINE, session=SessionTerms(length=4), data_budget=Budget(4.0, 1e-4))
        aborted = bench.sessions.open(short, "aborted").id
        ask_all(bench, rounds["online"])
        ask(attached(bench, "ann", aborted), 1, ASKED["ann"][0])
        bench.rounds.lifecycle.abort(aborted, "not needed", "abort")
        ask_by_turns(bench, {rounds[name]: asked_in(name) for name in by_turns})
        release(bench, rounds.values())
        with bench.store.read() as connection:
            told = select(asked.c.round_id, asked.c.analyst, asked.c.envelope).order_by(asked.c.sequence)
            envelopes = connection.execute(told).all()
            trusted = bench.signer.verifier_keys(connection)
            lies = [
                bench.signer.envelope(connection, SESSION_RECEIPT_TYPE, lie.to_bytes())
                for row in envelopes
                if (row.round_id, row.analyst) == (rounds["online"], "ann")
                for lie in [replace(read_session_receipt(row.envelope), chain=bytes(32))]
            ]
        names = rounds | {"aborted": aborted}
        return Held(
            Released(bench.directory, rounds, key),
            {name: {who: bundle(bench, who, each) for who in ("ann", "bob")} for name, each in names.items()},
            {
                name: {
                    who: [row.envelope for row in envelopes if (row.round_id, row.analyst) == (each, who)]
                    for who in ("ann", "bob")
                }
                for name, each in names.items()
            },
            audited(bench),
            trusted,
            lies,
        )


@pytest.fixture(scope="module")
def sessions(held: Held) -> Released:
    return held.released


def bundle(bench: Bench, analyst: str, session_id: str) -> Bundle:
    told = bench.rounds.analyst_views.evidence(analyst, session_id, 0)
    assert told is not None
    evidence = Evidence.from_bytes(told)
    released = evidence.records[-1].leaf.count(b"round-released")
    with bench.store.read() as connection:
        synopsis = read_synopsis(connection, session_id) or None if released else None
    stream = tuple(bench.rounds.analyst_views.results(analyst, session_id, 0, 1000)) if released else ()
    return Bundle(
        evidence, bench.rounds.analyst_views.submitted(analyst, session_id, 0, 1 << 20) or None, stream, synopsis
    )


def found(bundle: Bundle, papers: VerifierInputs) -> Check | None:
    try:
        verify(bundle.to_bytes(), papers, lambda check, said: None)
    except CheckFailed as failed:
        return failed.check
    return None


@pytest.mark.parametrize(
    ("name", "count"), [("online", 3), ("online_private", 3), ("low_sensitivity", 2), ("low_sensitivity, prior", 2)]
)
def test_an_analyst_verifies_what_it_was_told(held: Held, name: str, count: int) -> None:
    """With each receipt that it may have kept; by the page of formats alone, too."""
    mine, receipts = held.bundles[name]["ann"], held.receipts[name]["ann"]
    assert len(receipts) == count
    statements = asked_in(name)["ann"]
    for receipt in (None, *receipts):
        assert found(mine, VerifierInputs(held.trusted, receipt, statements)) is None
    assert found(held.bundles[name]["bob"], VerifierInputs(held.trusted, held.receipts[name]["bob"][-1])) is None
    (key,) = held.trusted
    items = page_reader.bundle(mine.to_bytes().decode(), key.to_text())
    assert items["round"]["session"]["shares"] == 2
    assert (items["round"]["analyst_budget"] is None) == (name == "online")


def test_what_is_released_cannot_differ_from_what_was_told(held: Held) -> None:
    """A custodian who told ann something else live has signed so, and cannot have signed what is released."""
    mine = held.bundles["online"]["ann"]
    assert [found(mine, VerifierInputs(held.trusted, lie)) for lie in held.lies] == [
        Check.STREAM,
        Check.STREAM,
        Check.RECEIPT,
    ]
    assert found(mine, VerifierInputs(held.trusted, held.receipts["online_private"]["ann"][0])) is Check.RECEIPT
    assert found(mine, VerifierInputs(held.trusted, held.receipts["online"]["bob"][0])) is Check.RECEIPT


def test_a_session_that_was_aborted_says_what_was_asked_and_charged(held: Held) -> None:
    mine, (receipt,) = held.bundles["aborted"]["ann"], held.receipts["aborted"]["ann"]
    assert found(mine, VerifierInputs(held.trusted, receipt, ASKED["ann"][:1])) is None
    assert found(mine, VerifierInputs(held.trusted, receipt, ASKED["ann"][1:2])) is Check.WORKLOAD
    assert found(held.bundles["aborted"]["bob"], VerifierInputs(held.trusted)) is None
    assert mine.stream == ()


def test_an_audit_finds_sessions_in_order_and_names_those_that_protect_nobody(held: Held) -> None:
    assert problems(held.audit) == []
    assert held.audit.recorded is not None
    states = {each: recorded.state for each, recorded in held.audit.recorded.rounds.items()}
    assert sorted(states.values()) == ["aborted", *["released"] * len(SESSIONS)]
    named = {remark.split()[2] for remark in held.audit.remarks if "does not protect its 2 analysts" in remark}
    assert named == {held.released.rounds["online"], held.bundles["aborted"]["ann"].evidence.round_id}


@pytest.mark.full
@pytest.mark.parametrize(("name", "queries"), [*SESSIONS.items()])
def test_an_honest_session_agrees_when_it_is_replayed(sessions: Released, name: str, queries: int) -> None:
    found = sessions.replay(name)
    assert found.difference is None, found
    assert [check.name for check in found.checks] == SESSION_CHECKS
    assert sum(answers for answers, _, _ in found.ways.values()) == queries


def test_a_prior_that_is_not_the_seed_s_is_found(sessions: Released, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_answers, "measured_for", measured_wrongly)
    assert sessions.replay("low_sensitivity, prior").failed == "answers"


def in_slots(*slots: int) -> SessionWorkload:
    """What an analyst asked, as far as its slots."""
    return SessionWorkload(np.array(slots, dtype=np.int64), ())


def test_a_slot_that_was_left_out_where_answers_are_given_at_once_is_found() -> None:
    """Else a custodian could choose, for each statement, the slot whose noise it likes."""
    check_none_left_out([in_slots(0, 2), in_slots(1, 3), in_slots()])
    for left_out, words in (
        (in_slots(0, 3), "3 is there, but it must be 2"),
        (in_slots(2), "1 is there, but it must be 0"),
    ):
        with pytest.raises(Differs, match=f"^the slot of the next statement, .*: {words}"):
            check_none_left_out([left_out, in_slots(1)])


def test_a_replay_finds_a_slot_that_was_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is signed and stored agrees with it: the custodian began with the second slot."""
    monkeypatch.setattr(answer_store, "count_slots", lambda *_: 1)
    with state_directory(tmp_path) as (bench, key):
        session_id = bench.sessions.open(ONLINE, "open").id
        ask_all(bench, session_id)
        release(bench, [session_id])
    found = Released(bench.directory, {"online": session_id}, key).replay("online")
    assert fails(found, "slots", "the slot of the next statement", SESSION_CHECKS), found


def with_workload(connection: sqlite3.Connection, session_id: str, change: Callable[[bytes], bytes]) -> None:
    """ann's workload changed in the store."""
    mine = "WHERE round_id = ? AND analyst = 'ann'"
    ((workload,),) = connection.execute(f"SELECT workload FROM submissions {mine}", [session_id]).fetchall()
    connection.execute(f"UPDATE submissions SET workload = ? {mine}", [change(workload), session_id])


def a_slot(connection: sqlite3.Connection, session_id: str) -> None:
    def later(workload: bytes) -> bytes:
        statements, (*slots, last) = asked_from_bytes(workload)
        return asked_to_bytes(statements, [*slots, last + 1])

    with_workload(connection, session_id, later)


def a_statement(connection: sqlite3.Connection, session_id: str) -> None:
    def other(workload: bytes) -> bytes:
        (first, *_, last), slots = asked_from_bytes(workload)
        return asked_to_bytes([first, first, last], slots)

    with_workload(connection, session_id, other)


def told(change: Callable[[bytes], bytes], column: str = "chunk") -> Change:
    """What is kept of ann's second answer, as it was told."""
    mine = "WHERE round_id = ? AND analyst = 'ann' AND sequence = 2"

    def changing(connection: sqlite3.Connection, session_id: str) -> None:
        ((stored,),) = connection.execute(f"SELECT {column} FROM asked {mine}", [session_id]).fetchall()
        connection.execute(f"UPDATE asked SET {column} = ? {mine}", [change(stored), session_id])

    return changing


def one_more(chunk: bytes) -> bytes:
    each = answers_from_chunk(chunk)
    each.answers.values[3] += 1
    return answers_to_chunk(each.round_id, each.sequence, each.first_query, each.answers)


CHANGES: dict[str, tuple[Change, str, str]] = {
    "a statement": (a_statement, "workloads", "analyst ann, the workload's commitment"),
    "a slot": (a_slot, "workloads", "analyst ann, the workload's commitment"),
    "an answer as it was told": (told(one_more), "told", "analyst ann, message 2, query 4, value"),
    "an answer that is none": (told(lambda _: b"\xff"), "told", "analyst ann, a result message cannot be read"),
    "a statement as it was asked": (told(lambda _: b"", "statement"), "told", "analyst ann, answer 2.statement"),
    "a receipt": (
        sql(
            "UPDATE asked SET envelope = (SELECT envelope FROM asked WHERE round_id = :round AND analyst = 'ann' "
            "AND sequence = 1) WHERE round_id = :round AND analyst = 'ann' AND sequence = 2"
        ),
        "told",
        "analyst ann, the receipt of answer 2.",
    ),
    "the last receipt": (
        sql("UPDATE submissions SET receipt = x'00' WHERE round_id = :round AND analyst = 'bob'"),
        "told",
        "analyst bob, the receipt with the workload",
    ),
    "an answer dropped": (
        sql("DELETE FROM asked WHERE round_id = :round AND analyst = 'bob' AND sequence = 2"),
        "told",
        "analyst bob, answers that were told: 1 is there, but it must be 2",
    ),
    "an analyst's answers dropped": (
        sql("DELETE FROM asked WHERE round_id = :round AND analyst = 'bob'"),
        "told",
        "analysts who were answered: ann is there",
    ),
    "the terms": (
        sql("""UPDATE rounds SET terms = replace(terms, '"length":', '"length":1') WHERE id = :round"""),
        "plan",
        "terms.session.length",
    ),
}


@pytest.mark.thin(4)
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_changed_in_the_store_is_found_and_named(sessions: Released, change: str, tmp_path: Path) -> None:
    changing, check, named = CHANGES[change]
    found = sessions.altered(tmp_path / "copy", "online_private", changing)
    assert fails(found, check, named, SESSION_CHECKS), found


def test_another_seed_and_another_draw_are_found(
    sessions: Released, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = sessions.key.public_key().public_bytes_raw()
    another = seal_to(mine, sessions.rounds["online"], bytes(32), bytes(32))
    change = sql(f"UPDATE sealed_seeds SET sealed = x'{another.hex()}' WHERE round_id = :round")
    found = sessions.altered(tmp_path / "seed", "online", change)
    assert fails(found, "seed", "the round's seed is not the one that was committed to", SESSION_CHECKS), found
    draw = DiscreteGaussian.draw
    monkeypatch.setattr(DiscreteGaussian, "draw", lambda noise, count, stream: 2 * draw(noise, count, stream))
    found = sessions.replay("online_private")
    assert fails(found, "answers", "analyst ", SESSION_CHECKS), found
