"""Receipts of a session's answers contradict one another where they are of one answer to one analyst."""

from __future__ import annotations

from harness.audit_failures import failed_checks
from harness.custodian import Custodian

from equipoise.auditing.verify import verify
from equipoise.records.receipts import SessionReceiptPayload

SESSION = "bb"


def receipt(custodian: Custodian, analyst: str, sequence: int, chain: int) -> bytes:
    time = custodian.listed[SESSION].open_time
    payload = SessionReceiptPayload(
        "test", SESSION, analyst, sequence, bytes([chain]) * 32, time, custodian.promise(SESSION)
    )
    return custodian.session_receipt(payload)


def found(custodian: Custodian, receipts: list[bytes]) -> str:
    return failed_checks(verify(custodian.archive(), custodian.trusted, (), receipts)).get("A11", "")


def test_first_answers_to_two_analysts_are_no_contradiction(custodian: Custodian) -> None:
    custodian.play_session(SESSION)
    own = [receipt(custodian, "ann", 1, 1), receipt(custodian, "ann", 2, 2)]
    assert found(custodian, [*own, receipt(custodian, "bob", 1, 3), receipt(custodian, "bob", 2, 4)]) == ""
    two = found(custodian, [*own, receipt(custodian, "bob", 1, 3), receipt(custodian, "ann", 1, 3)])
    assert f"answer 1 of 'ann' in the session {SESSION} has two receipts" in two
