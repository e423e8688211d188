"""Custodians who do what they must not, and sign it: the audit names what was done."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from harness.audit_failures import failed_checks, failures
from harness.custodian import DATA_PARTS, ORDER, Custodian

from equipoise.accounting import Cost, charge_at, charge_of
from equipoise.auditing.archive import AuditorLog
from equipoise.auditing.verify import verify
from equipoise.records.record import Kind

ROUND, OTHER = "aa", "bb"
PLANNED, CHARGED = charge_of(DATA_PARTS), charge_at(DATA_PARTS, ORDER)
LESS = replace(CHARGED, divergence=CHARGED.divergence - 10**6)


@pytest.fixture
def custodian(custodian: Custodian) -> Custodian:
    """With a second whole round."""
    custodian.play(OTHER)
    return custodian


def release_before_reservation(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.release("cc")


def sealed_before_reservation(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.seal("cc")
    custodian.reserve("cc")


def run_before_seal(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.reserve("cc")
    custodian.run("cc")
    custodian.seal("cc")


def spent_without_run(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.reserve("cc")
    custodian.seal("cc")
    custodian.settle("cc")
    custodian.release("cc")


def released_before_spending(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.reserve("cc")
    custodian.seal("cc")
    custodian.run("cc")
    custodian.release("cc")


def sealed_twice(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.reserve("cc")
    custodian.seal("cc")
    custodian.seal("cc")


def opened_on_nothing(custodian: Custodian) -> None:
    custodian.records = [each for each in custodian.records if each.kind != "dataset-registered"]


def released_after_abort(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.reserve("cc")
    custodian.seal("cc")
    custodian.settle("cc", "release")
    custodian.abort("cc", "released")
    custodian.release("cc")


def given_back_after_run(custodian: Custodian) -> None:
    custodian.open("cc")
    custodian.reserve("cc")
    custodian.seal("cc")
    custodian.run("cc")
    custodian.settle("cc", "release")
    custodian.abort("cc", "released")


def charged_less_throughout(custodian: Custodian) -> None:
    """Journal and record agree, and both were signed: only the parts tell."""
    custodian.open("cc")
    custodian.reserve("cc", LESS)
    custodian.seal("cc")


def planned_less(custodian: Custodian) -> None:
    custodian.open("cc", cost=replace(PLANNED, rho=PLANNED.rho - 1))


def cap_exceeded(custodian: Custodian) -> None:
    events = json.dumps(
        {"cap": {"epsilon": 1.444, "delta": 1e-6}, "accepted": []}
    )  # two rounds fit, and three do not
    custodian.append("set-cap", "data/shop", "", Cost(), events)
    custodian.play("cc")


def cap_below_what_is_spent(custodian: Custodian) -> None:
    events = json.dumps({"cap": {"epsilon": 1.43, "delta": 1e-6}, "accepted": []})
    custodian.append("set-cap", "data/shop", "", Cost(), events)


def rounds_that_do_not_add(custodian: Custodian) -> None:
    """People in the table are in every round, so that the worst alone says too little."""
    custodian.open_account("data/other", "worst", 3.0)


def released_late(custodian: Custodian) -> None:
    """At a point of the grid, but not the first: answers were there, and nobody was told."""
    custodian.play("cc")
    late = json.loads(custodian.records[-1].items[0].content)["release_time"] + 60_000_000
    custodian.change_last("release", release_time=late)
    custodian.listed["cc"] = replace(custodian.listed["cc"], release_time=late)


def a_seed_for_two_rounds(custodian: Custodian) -> None:
    """Under another salt each, so that the commitments differ."""
    custodian.open("cc")
    custodian.change_last("round", seed_fingerprint=fingerprint_of(custodian, ROUND))


def fingerprint_of(custodian: Custodian, round_id: str) -> str:
    opened = [each for each in custodian.records if each.kind == Kind.ROUND_OPENED]
    items = [json.loads(each.items[0].content) for each in opened]
    return str(next(item["seed_fingerprint"] for item in items if item["round"] == round_id))


def a_journal_before_the_log(custodian: Custodian) -> None:
    """The log began upon charges that the journal which is shown does not have."""
    first, custodian.records[-1:] = custodian.records[-1], [custodian.records[0]]
    custodian.change_last("start", journal={"digest": "ab" * 32})
    custodian.records[0], custodian.records[-1] = custodian.records[-1], first


def seed_read_after_destruction(custodian: Custodian) -> None:
    custodian.destroy_seed(ROUND)
    custodian.read_seed(ROUND)


def seed_read_off_the_record(custodian: Custodian) -> None:
    custodian.own = AuditorLog("auditor", {}, {ROUND: 1})


def nonce_ignored(custodian: Custodian) -> None:
    custodian.own = AuditorLog("auditor", {ROUND: "ab" * 32}, {})


@pytest.mark.parametrize(
    ("cheat", "check", "words"),
    [
        (release_before_reservation, "A8", "comes while the round is open: it must be sealed"),
        (sealed_before_reservation, "A8", "what it reserves differs from the budget journal"),
        (run_before_seal, "A8", "data were touched, or charges settled, before it"),
        (spent_without_run, "A8", "the journal does not say that it ran"),
        (released_before_spending, "A8", "what it spends differs from the budget journal"),
        (sealed_twice, "A8", "comes while the round is sealed: it must be open"),
        (opened_on_nothing, "A8", "the dataset 'shop' is not registered before"),
        (released_after_abort, "A8", "comes while the round is aborted: it must be sealed"),
        (given_back_after_run, "A6", "cannot follow those before it: 'release'"),
        (charged_less_throughout, "A6", "charges data/shop an amount that differs from the sum of its parts"),
        (planned_less, "A9", "the data cost is not the sum of its parts"),
        (cap_exceeded, "A7", "takes data/shop to epsilon"),
        (cap_below_what_is_spent, "A7", "takes data/shop to epsilon"),
        (rounds_that_do_not_add, "A7", "opens data/other so that rounds do not add up as they must"),
        (seed_read_after_destruction, "A8", "a seed was read after it was destroyed"),
        (seed_read_off_the_record, "A10", "was read 1 times, of which 0 are recorded"),
        (released_late, "A8", "is later than the first point of the release grid after its end"),
        (a_seed_for_two_rounds, "A10", f"has the same seed as the round {ROUND}"),
        (a_journal_before_the_log, "A5", "not the one that entry 0 of the log (log-started) commits to"),
        (nonce_ignored, "A10", "does not name the nonce that the auditor gave"),
    ],
)
def test_what_was_done_wrongly_and_signed_is_named(
    custodian: Custodian, cheat: Callable[[Custodian], None], check: str, words: str
) -> None:
    cheat(custodian)
    assert words in failures(custodian, custodian.archive()).get(check, "")


def test_another_workload_than_the_receipt_s_is_found(custodian: Custodian) -> None:
    receipt = custodian.receipt(ROUND, "ann", b"w" * 32)
    audit = verify(custodian.archive(), custodian.trusted, (), [receipt])
    assert "another workload of 'ann' was used than the newest receipt says" in failed_checks(audit)["A11"]


@pytest.mark.parametrize(
    ("promised", "words"),
    [
        ({"max_half_width": 0.001}, "promises the max half width 0.001, but 0.1 is on record"),
        ({"opened_root": bytes(32)}, f"promises the opened root {'00' * 32}, but"),
    ],
)
def test_a_promise_that_is_not_on_record_is_found(
    custodian: Custodian, promised: dict[str, Any], words: str
) -> None:
    """Also by a receipt that another one has replaced."""
    custodian.promised = promised
    lie = custodian.receipt(ROUND, "ann", b"w" * 32)
    custodian.promised, custodian.time = {}, custodian.time + timedelta(seconds=1)
    receipts = [lie, custodian.receipt(ROUND, "ann", custodian.commitment(ROUND, "ann"))]
    detail = failed_checks(verify(custodian.archive(), custodian.trusted, (), receipts))["A11"]
    assert words in detail
    assert detail.endswith("the custodian has made two different promises")
    assert failed_checks(verify(custodian.archive(), custodian.trusted, (), receipts[1:])) == {}
