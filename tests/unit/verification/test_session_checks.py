"""The bundle of a session passes as it was made, and every lie in it is found, and by which check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from harness.small_custodian import DEPLOYMENT, ROUND, STATEMENTS, TIME, Told
from harness.verifying import found, log_of, papers, with_evidence

from equipoise.model.results import AnswerMethod
from equipoise.queries.predicates import attribute
from equipoise.records.receipts import SessionReceiptPayload
from equipoise.verification.checks import Check

NOTHING = {"rho": 0, "epsilon": 0, "delta": 0, "divergence": 0}
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
AT_ONCE = Told(slots=(0, 4, 8))
IN_TURNS = Told(slots=(0, 3, 12), turn_seconds=5)  # the first of three shares
UNPROTECTED: dict[str, dict[str, Any]] = {
    "round": {
        "analyst_budget": None,
        "analyst_cost": None,
        "analyst_events": {"mechanism": "equilibrium", "events": []},
    },
    "result": {"charge": NOTHING},
    "charge": {"charge": NOTHING, "state": "none"},
}
HONEST = {
    "at once": AT_ONCE,
    "in turns": IN_TURNS,
    "fitted to its hypothesis": replace(AT_ONCE, methods={2: AnswerMethod.FITTED}),
    "nothing asked": replace(AT_ONCE, statements=None),
    "aborted while open": replace(AT_ONCE, end="open"),
    "aborted when sealed": replace(AT_ONCE, end="sealed"),
    "aborted when running": replace(AT_ONCE, end="running"),
    "unprotected": replace(AT_ONCE, items=UNPROTECTED),
    "unprotected and aborted": replace(AT_ONCE, items=UNPROTECTED, end="open"),
}
SESSION = {"ending": "stop", "length": 9, "turn_seconds": 0, "shares": 3}
LIES: dict[str, tuple[Told, Check]] = {
    "an answer told otherwise": (replace(AT_ONCE, live={3: 1}), Check.STREAM),
    "the last answer told otherwise": (replace(AT_ONCE, live={9: 1}), Check.STREAM),
    "another share's slot": (replace(IN_TURNS, slots=(0, 4, 12)), Check.WORKLOAD),
    "a slot beyond the turns": (replace(IN_TURNS, slots=(0, 3, 27)), Check.WORKLOAD),
    "a slot beyond the length": (replace(AT_ONCE, slots=(0, 4, 9)), Check.WORKLOAD),
    "a share beyond the shares": (
        replace(AT_ONCE, items={"round": {"session": SESSION | {"shares": 0}}}),
        Check.WORKLOAD,
    ),
    "more statements than the share": (replace(AT_ONCE, items={"share": {"statements": 2}}), Check.WORKLOAD),
    "more queries than the share": (replace(AT_ONCE, items={"share": {"queries": 9}}), Check.WORKLOAD),
    "nothing sealed": (replace(AT_ONCE, items={"workload": {"commitment": None}}), Check.RECEIPT),
    "other statements sealed": (replace(AT_ONCE, items={"workload": {"commitment": "00" * 32}}), Check.WORKLOAD),
    "an answer of a round's": (replace(AT_ONCE, methods={2: AnswerMethod.SYNOPSIS}), Check.INTERVALS),
    "a round's charge given back": (
        replace(AT_ONCE, end="sealed", items={"charge": {"state": "released"}}),
        Check.CHARGE,
    ),
    "never charged": (
        replace(AT_ONCE, end="open", items={"charge": {"charge": NOTHING, "state": "none"}}),
        Check.CHARGE,
    ),
    "unprotected, and yet charged": (
        replace(AT_ONCE, items={"round": UNPROTECTED["round"], "result": {"charge": NOTHING | {"rho": 1}}}),
        Check.CHARGE,
    ),
    "unprotected with a budget": (
        replace(AT_ONCE, items=UNPROTECTED | {"round": UNPROTECTED["round"] | {"analyst_budget": BUDGET}}),
        Check.CHARGE,
    ),
    "an ending that is none": (
        replace(
            AT_ONCE,
            items={"round": {"session": SESSION | {"ending": ""}}},
            promised={"session": SESSION},
        ),
        Check.ROUND,
    ),
    "another promise than on record": (replace(AT_ONCE, promised={"max_half_width": 0.001}), Check.RECEIPT),
    "another opening than on record": (replace(AT_ONCE, promised={"opened_root": "00" * 32}), Check.RECEIPT),
    "other turns than on record": (
        replace(IN_TURNS, promised={"session": SESSION | {"turn_seconds": 59}}),
        Check.RECEIPT,
    ),
    "a session that says that it is none": (replace(AT_ONCE, items={"round": {"session": None}}), Check.RECEIPT),
}


@pytest.mark.parametrize("told", HONEST.values(), ids=HONEST.keys())
def test_what_is_honest_passes_with_any_receipt_that_was_kept(told: Told) -> None:
    log = log_of()
    bundle = told.bundle(log)
    assert found(bundle) is None
    if told.statements is not None:
        for receipt in told.receipts(log):
            assert found(bundle, papers(receipt=receipt, statements=STATEMENTS)) is None


@pytest.mark.parametrize(("told", "check"), LIES.values(), ids=LIES.keys())
def test_what_is_signed_and_wrong_is_found(told: Told, check: Check) -> None:
    assert found(told.bundle(log_of())) is check


@pytest.mark.parametrize("query", range(10))
def test_an_answer_that_was_told_live_cannot_be_another_one_later(query: int) -> None:
    """The custodian signs the released answers anew, and shows that receipt as its copy; the analyst kept one."""
    log = log_of()
    bundle = AT_ONCE.bundle(log)
    live = replace(AT_ONCE, live={query: 12345}).receipts(log)
    statement = 0 if query < 8 else query - 7
    for place, receipt in enumerate(live):
        # A receipt stands for the answers up to it: one from before the other answer agrees, all later ones do not.
        same_number = Check.RECEIPT if place == len(live) - 1 else Check.STREAM
        assert found(bundle, papers(receipt=receipt)) is (None if place < statement else same_number)


def test_receipts_of_other_answers_are_found() -> None:
    log = log_of()
    bundle = AT_ONCE.bundle(log)
    first, *_, last = AT_ONCE.receipts(log)
    # The bundle is cut off: it has fewer answers than the analyst was told.
    shorter = replace(AT_ONCE, statements=STATEMENTS[:2], slots=(0, 4)).bundle(log)
    assert found(shorter, papers(receipt=first)) is None
    assert found(shorter, papers(receipt=last)) is Check.RECEIPT
    assert found(replace(AT_ONCE, statements=None).bundle(log), papers(receipt=first)) is Check.RECEIPT
    # Receipts of somebody else, of something else, or of a round.
    payload = SessionReceiptPayload(DEPLOYMENT, ROUND, "ann", 1, bytes(32), TIME, AT_ONCE.promise())
    for other in (
        replace(payload, analyst="bob"),
        replace(payload, session="cd" * 16),
        replace(payload, deployment="other"),
    ):
        receipt = log.session_receipt(other)
        assert found(bundle, papers(receipt=receipt)) is Check.RECEIPT
    assert found(bundle, papers(receipt=Told().bundle(log).evidence.receipt)) is Check.RECEIPT
    assert found(Told().bundle(log), papers(receipt=last)) is Check.RECEIPT
    assert found(with_evidence(bundle, receipt=None)) is Check.RECEIPT


@pytest.mark.parametrize("promised", [{"max_half_width": 0.001}, {"opened_root": "00" * 32}])
def test_the_receipt_that_was_kept_promises_what_is_on_record(promised: dict[str, Any]) -> None:
    """What the custodian shows as its copy promises the right terms; what the analyst was given does not."""
    log = log_of()
    bundle = AT_ONCE.bundle(log)
    for receipt in replace(AT_ONCE, promised=promised).receipts(log):
        assert found(bundle, papers(receipt=receipt)) is Check.RECEIPT


def test_other_statements_are_found() -> None:
    log = log_of()
    bundle = AT_ONCE.bundle(log)
    others = (*STATEMENTS[:2], attribute("colour") == "green")
    assert found(bundle, papers(statements=others)) is Check.WORKLOAD
    assert found(bundle, papers(statements=STATEMENTS[:2])) is Check.WORKLOAD
    nothing = replace(AT_ONCE, statements=None).bundle(log)
    assert found(nothing, papers(statements=STATEMENTS)) is Check.WORKLOAD
    assert found(replace(bundle, workload=None)) is Check.WORKLOAD
    assert found(with_evidence(bundle, salt=None)) is Check.WORKLOAD
    assert found(replace(bundle, workload=Told().bundle(log).workload)) is Check.WORKLOAD


def test_a_round_has_no_answers_of_a_session() -> None:
    assert found(Told(methods={2: AnswerMethod.HYPOTHESIS}).bundle(log_of())) is Check.INTERVALS
