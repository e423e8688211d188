"""What `equipoise audit verify` answers of sessions: charged when they open, on the terms on record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from harness.audit_failures import failed_checks
from harness.custodian import SESSION, Custodian

from equipoise.accounting import Cost
from equipoise.auditing.archive import AuditorLog
from equipoise.auditing.report import as_json, as_markdown
from equipoise.auditing.verify import verify
from equipoise.model.times import to_microseconds
from equipoise.records.receipts import SessionReceiptPayload

HELD = "aa"


@pytest.fixture
def custodian() -> Custodian:
    """A table and a whole session."""
    made = Custodian()
    made.register()
    made.play_session(HELD)
    return made


def test_every_honest_session_is_in_order(custodian: Custodian) -> None:
    custodian.play_session("a1", turn_seconds=5)
    custodian.play_session("a2", protected=False)
    for session, sealed, protected in (("b1", False, True), ("b2", True, True), ("b3", False, False)):
        custodian.open_session(session, protected=protected)
        if sealed:
            custodian.seal(session)
        custodian.settle(session)
        custodian.abort(session, "spent")
    custodian.play("c1")
    custodian.open_session("d1")
    audit = verify(custodian.archive(), custodian.trusted)
    assert not failed_checks(audit)
    data = {account.name: account for account in audit.standing}["data/shop"]
    assert {each: charge.state for each, charge in data.charges.items()} == dict.fromkeys(
        (HELD, "a1", "a2", "b1", "b2", "b3", "c1"), "spent"
    ) | {"d1": "reserved"}


def test_analysts_who_are_not_protected_are_named_in_words(custodian: Custodian) -> None:
    custodian.play_session("a2", protected=False)
    custodian.open_session("a3", analysts=("ann",), protected=False)  # there is nobody to protect her from
    audit = verify(custodian.archive(), custodian.trusted)
    (remark,) = audit.remarks
    assert remark.startswith("the session a2 (equilibrium) does not protect its 2 analysts from one another")
    report = as_markdown(audit)
    assert remark in report
    assert "not protected from one another" in report
    assert "| there is one, and nobody to protect it from |" in report
    told = {each["round"]: each["protects_analysts"] for each in as_json(audit)["rounds"]}
    assert told == {HELD: True, "a2": False, "a3": True}


def opened_before_it_was_charged(custodian: Custodian) -> None:
    custodian.shares["cc"] = ["ann", "bob"]
    custodian.open("cc", session={**SESSION, "turn_seconds": 0})
    custodian.reserve("cc")
    custodian.append("run", "data/shop", "cc", Cost(), "{}")


def opened_before_it_had_begun(custodian: Custodian) -> None:
    custodian.shares["cc"] = ["ann", "bob"]
    custodian.reserve("cc")
    custodian.open("cc", session={**SESSION, "turn_seconds": 0})
    custodian.append("run", "data/shop", "cc", Cost(), "{}")


def never_begun(custodian: Custodian) -> None:
    custodian.shares["cc"] = ["ann", "bob"]
    custodian.reserve("cc")
    custodian.open("cc", session={**SESSION, "turn_seconds": 0})
    custodian.settle("cc", "release")
    custodian.abort("cc", "released")


def begun_without_a_reservation(custodian: Custodian) -> None:
    custodian.shares["bb"] = ["ann", "bob"]
    custodian.append("run", "data/shop", "bb", Cost(), "{}")
    custodian.open("bb", session={**SESSION, "turn_seconds": 0})


def reserved_once_it_had_begun(custodian: Custodian) -> None:
    custodian.shares["bb"] = ["ann", "bob"]
    custodian.append("run", "data/shop", "bb", Cost(), "{}")
    custodian.reserve("bb")
    custodian.open("bb", session={**SESSION, "turn_seconds": 0})


def given_back(custodian: Custodian) -> None:
    custodian.open_session("cc")
    custodian.settle("cc", "release")
    custodian.abort("cc", "released")


def settled_after_its_abort(custodian: Custodian) -> None:
    custodian.open_session("cc")
    custodian.abort("cc", "spent")
    custodian.settle("cc")


def not_settled_by_its_abort(custodian: Custodian) -> None:
    custodian.open_session("cc")
    custodian.abort("cc", "spent")


def settled_before_the_seal(custodian: Custodian) -> None:
    custodian.open_session("cc")
    custodian.settle("cc")
    custodian.seal("cc")


def one_analyst_left_out(custodian: Custodian) -> None:
    custodian.shares["cc"] = ["ann"]
    custodian.reserve("cc")
    custodian.append("run", "data/shop", "cc", Cost(), "{}")
    custodian.open("cc", session={**SESSION, "turn_seconds": 0})


def unprotected_analysts_charged(custodian: Custodian) -> None:
    custodian.shares["cc"] = ["ann", "bob"]
    custodian.reserve("cc")
    custodian.append("run", "data/shop", "cc", Cost(), "{}")
    custodian.unprotected.add("cc")
    custodian.open("cc", session={**SESSION, "turn_seconds": 0})


def open_beyond_its_turns(custodian: Custodian) -> None:
    custodian.open_session("cc", turn_seconds=5)
    custodian.change_last("round", close_time=10**18)


def other_terms_than_planned(custodian: Custodian) -> None:
    custodian.open_session("cc")
    custodian.change_last("round", session={**SESSION, "length": 9, "turn_seconds": 0, "shares": 2})


def more_shares_than_planned(custodian: Custodian) -> None:
    custodian.open_session("cc")
    custodian.change_last("round", session={**SESSION, "turn_seconds": 0, "shares": 3})


def a_cost_without_a_budget(custodian: Custodian) -> None:
    custodian.open_session("cc")
    custodian.change_last("round", analyst_budget=None)
    custodian.change_last("plan", terms={"analyst_budget": None})


BEGUN = "the session's charges are not reserved, and begun, before it opens"


@pytest.mark.parametrize(
    ("cheat", "check", "words"),
    [
        (opened_before_it_was_charged, "A8", BEGUN),
        (opened_before_it_had_begun, "A8", BEGUN),
        (never_begun, "A8", BEGUN),
        (begun_without_a_reservation, "A8", BEGUN),
        (reserved_once_it_had_begun, "A8", BEGUN),
        (given_back, "A6", "cannot follow those before it: 'release'"),
        (settled_after_its_abort, "A8", "comes before its charges are settled"),
        (not_settled_by_its_abort, "A8", "what it settles differs from the budget journal"),
        (settled_before_the_seal, "A8", "data were touched, or charges settled, before it"),
        (one_analyst_left_out, "A9", "it charges other accounts than the data's and those of its shares"),
        (unprotected_analysts_charged, "A9", "it charges other accounts than the data's and those of its shares"),
        (open_beyond_its_turns, "A9", "the session is open for longer than its turns"),
        (other_terms_than_planned, "A9", "the session's terms differ from the public parameters"),
        (more_shares_than_planned, "A9", "the session's terms differ from the public parameters"),
        (a_cost_without_a_budget, "A9", "analysts have a cost without a budget"),
    ],
)
def test_what_was_done_wrongly_in_a_session_and_signed_is_named(
    custodian: Custodian, cheat: Callable[[Custodian], None], check: str, words: str
) -> None:
    cheat(custodian)
    assert words in failed_checks(verify(custodian.archive(), custodian.trusted)).get(check, "")


@pytest.mark.parametrize("used", [None, "cd" * 32, "ab" * 32])
def test_a_nonce_that_a_session_took_is_looked_for(custodian: Custodian, used: str | None) -> None:
    custodian.open_session("bb")
    custodian.seal("bb", used)
    custodian.own = AuditorLog("auditor", {"bb": "ab" * 32}, {})
    problem = failed_checks(verify(custodian.archive(), custodian.trusted)).get("A10", "")
    assert ("does not name the nonce that the auditor gave" in problem) == (used != "ab" * 32)


def test_receipts_of_answers_are_compared_with_what_is_on_record(custodian: Custodian) -> None:
    custodian.silent = {"bob"}
    custodian.play_session("bb")
    time = to_microseconds(custodian.time)
    payload = SessionReceiptPayload("test", "bb", "ann", 3, bytes(32), time, custodian.promise("bb"))

    def found(*payloads: SessionReceiptPayload) -> str:
        receipts = [custodian.session_receipt(each) for each in payloads]
        return failed_checks(verify(custodian.archive(), custodian.trusted, (), receipts)).get("A11", "")

    assert (
        found(payload, replace(payload, sequence=2, chain=bytes([1]) * 32), replace(payload, time=time + 5)) == ""
    )
    assert "has two receipts: the custodian signed two different answers" in found(
        payload, replace(payload, chain=b"x" * 32)
    )
    assert "which is not recorded" in found(replace(payload, session="zz"))
    assert "which is not recorded" in found(replace(payload, analyst="eve"))
    other = replace(payload.promise, max_half_width=0.001)
    assert "promises the max half width 0.001, but 0.1 is on record" in found(replace(payload, promise=other))
    assert "another deployment" in found(replace(payload, deployment="other"))
    assert "has no answers of 'bob'" in found(replace(payload, analyst="bob"))
    custodian.play("cc")
    assert "which is not recorded" in found(replace(payload, session="cc"))


def test_an_answer_s_receipt_is_of_somebody_who_had_a_certificate_when_it_was_signed(custodian: Custodian) -> None:
    custodian.revoke("ann")
    revoked = to_microseconds(custodian.time)
    for late, holds in ((0, True), (2 * 60 * 1_000_000, False)):
        payload = SessionReceiptPayload("test", HELD, "ann", 1, bytes(32), revoked + late, custodian.promise(HELD))
        receipts = [custodian.session_receipt(payload)]
        found = failed_checks(verify(custodian.archive(), custodian.trusted, (), receipts))
        assert ("a receipt is for 'ann' at" in found.get("A12", "")) is not holds
        assert found.keys() <= {"A12"}
