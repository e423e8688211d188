"""A custodian whose receipts do not say what was asked and answered is caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness.session_server import KEY, PROMISED, SESSION, STATEMENTS, Handler, Store, asked_of
from harness.shown_rounds import PROMISE
from harness.small_custodian import signing_key

from equipoise.errors import (
    VerificationFailed,
)
from equipoise.model.rounds import Ending
from equipoise.model.submissions import DryRun
from equipoise.profile.kept_dry_runs import keep_dry_run
from equipoise.profile.receipt_store import REFUSED_RECEIPTS, ReceiptStore, read_session_receipt
from equipoise.records.envelopes import sign
from equipoise.records.item_parts import RecordedSession
from equipoise.records.receipts import SESSION_RECEIPT_TYPE, chain_start, chain_step
from equipoise.wire.results import answers_from_chunk


def other_answer(store: Store) -> Handler:
    return store.handler(off=1)


def other_key(store: Store) -> Handler:
    return store.handler(keys=[signing_key(2)])


def other_terms(store: Store) -> Handler:
    return store.handler(promise=replace(PROMISED, beta=0.5))


def other_turns(store: Store) -> Handler:
    """The session that is promised answers by turns; the one that was shown, at once."""
    return store.handler(promise=replace(PROMISED, session=RecordedSession(Ending.STOP, 100, 1, 60)))


def no_session(store: Store) -> Handler:
    return store.handler(promise=PROMISE)


def other_session(store: Store) -> Handler:
    return saying(store, session="ef" * 16)


def saying(store: Store, **told: Any) -> Handler:
    """The first receipt says something else, with a chain that goes with it."""

    def serve(requests: Iterator[Any], _: Any) -> Iterator[Any]:
        yield store.attach(requests)
        statement = next(requests).asked.statement
        answer = store.answer(statement)
        wrong = replace(read_session_receipt(answer.answered.envelope), **told)
        start = chain_start(wrong.deployment, wrong.session, wrong.analyst, store.salt)
        answers = answers_from_chunk(answer.answered.chunk).answers
        chain = chain_step(start, 1, answer.answered.slot, statement, answers)
        answer.answered.envelope = sign(SESSION_RECEIPT_TYPE, replace(wrong, chain=chain).to_bytes(), [KEY])
        yield answer

    return serve


def other_analyst(store: Store) -> Handler:
    return saying(store, analyst="bob")


def other_deployment(store: Store) -> Handler:
    return saying(store, deployment="elsewhere")


@pytest.mark.parametrize(
    "lie",
    [
        other_answer,
        other_key,
        other_terms,
        other_turns,
        no_session,
        other_session,
        other_analyst,
        other_deployment,
    ],
)
def test_a_receipt_that_is_for_something_else_is_not_taken(tmp_path: Path, lie: Callable[[Store], Handler]) -> None:
    store = Store()
    with pytest.raises(VerificationFailed, match="kept as evidence"):
        asked_of(lie(store), keep=tmp_path)
    assert ReceiptStore(tmp_path).session_receipt(SESSION) is None
    (refused,) = (tmp_path / REFUSED_RECEIPTS).iterdir()
    assert refused.read_bytes() == store.answers[0].answered.envelope


def test_answers_promise_the_errors_that_a_dry_run_of_the_session_has_told(tmp_path: Path) -> None:
    told = DryRun(1, 1, PROMISED.max_half_width, PROMISED.max_uncertified, 1, 1, 0.01)
    store, keepsakes = Store(), ReceiptStore(tmp_path)
    keep_dry_run(keepsakes, SESSION, told)
    assert len(asked_of(store.handler(), STATEMENTS[:2], keep=tmp_path)) == 2
    keep_dry_run(keepsakes, SESSION, replace(told, max_half_width=told.max_half_width / 2))
    with pytest.raises(VerificationFailed, match=r"the max half width 0\.1, but 0\.05 was told by the dry run"):
        asked_of(store.handler(), STATEMENTS, keep=tmp_path)


def test_a_custodian_who_is_exchanging_its_key_is_believed(tmp_path: Path) -> None:
    answers = asked_of(Store().handler(keys=[KEY, signing_key(2)]), keep=tmp_path)
    assert len(answers) == len(STATEMENTS)


def test_a_custodian_who_forgets_answers_is_caught(tmp_path: Path) -> None:
    asked_of(Store().handler(), STATEMENTS[:3], keep=tmp_path)
    with pytest.raises(VerificationFailed, match="signed 3 answers, but says that there are 0"):
        asked_of(Store().handler(), STATEMENTS[:3], keep=tmp_path)


def test_a_custodian_who_answers_the_same_again_otherwise_is_caught(tmp_path: Path) -> None:
    """The other store has as many answers, of another chain."""
    asked_of(Store().handler(), STATEMENTS[:2], keep=tmp_path)
    other = Store()
    asked_of(other.handler(), STATEMENTS[:2])
    with pytest.raises(VerificationFailed, match="two different things"):
        asked_of(other.handler(), STATEMENTS, keep=tmp_path)
