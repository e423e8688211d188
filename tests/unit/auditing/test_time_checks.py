"""Custodians who date what they have done back, or on: the audit names the time that cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from harness.audit_failures import failed_checks, failures
from harness.custodian import Custodian
from harness.record_book import rechained

from equipoise.auditing.verify import verify
from equipoise.model.times import EPOCH, from_microseconds, to_microseconds
from equipoise.records.receipts import SessionReceiptPayload
from equipoise.records.record import Kind

ROUND, OTHER = "aa", "bb"
HOURS = timedelta(hours=3)  # that are allowed
MOMENT = timedelta(microseconds=1)
LONG_AGO, FAR_OFF = datetime(2020, 1, 1, tzinfo=UTC), datetime(2199, 1, 1, tzinfo=UTC)


def dated(custodian: Custodian, action: str, time: datetime, round_id: str = OTHER) -> None:
    """All that was journaled at one step of a round gets another time; what is recorded next follows it."""
    custodian.journal = rechained(
        [
            replace(each, time=time) if (each.action, each.round_id) == (action, round_id) else each
            for each in custodian.journal
        ]
    )


def play(custodian: Custodian, **times: datetime) -> None:
    """A whole round, whose seal (`reserve`) and end (`spend`) have other times."""
    custodian.open(OTHER)
    custodian.reserve(OTHER)
    if "reserve" in times:
        dated(custodian, "reserve", times["reserve"])
    custodian.seal(OTHER)
    custodian.run(OTHER)
    custodian.settle(OTHER)
    if "spend" in times:
        dated(custodian, "spend", times["spend"])
    custodian.release(OTHER)


def opened_in(custodian: Custodian, time: datetime) -> None:
    custodian.open(OTHER)
    custodian.change_last("round", open_time=to_microseconds(time))
    custodian.listed[OTHER] = replace(custodian.listed[OTHER], open_time=to_microseconds(time))


def closed_before_it_was_opened(custodian: Custodian) -> None:
    custodian.open(OTHER)
    custodian.change_last("round", close_time=to_microseconds(LONG_AGO))


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (
            lambda each: play(each, reserve=LONG_AGO),
            "(round-sealed): is dated 2020-01-01 00:00:00 UTC, but came",
        ),
        (
            lambda each: play(each, spend=LONG_AGO),
            "(round-released): is dated 2020-01-01 00:00:00 UTC, but came",
        ),
        (
            lambda each: play(each, spend=FAR_OFF),
            "is dated 2199-01-01 00:00:00 UTC, but the archive was",
        ),
        (
            lambda each: opened_in(each, LONG_AGO),
            "(round-opened): is dated 2020-01-01 00:00:00 UTC, but came",
        ),
        (
            lambda each: opened_in(each, FAR_OFF),
            "is dated 2199-01-01 00:00:00 UTC, but the archive was",
        ),
        (closed_before_it_was_opened, "the round closes at 2020-01-01 00:00:00 UTC, before it is opened at"),
    ],
    ids=["sealed back", "released back", "released on", "opened back", "opened on", "closed before"],
)
def test_a_step_that_is_dated_back_or_on_is_found(
    custodian: Custodian, lie: Callable[[Custodian], None], words: str
) -> None:
    lie(custodian)
    assert words in failures(custodian)["A8"]


@pytest.mark.parametrize(("beyond", "holds"), [(timedelta(), True), (MOMENT, False)])
def test_a_clock_may_be_set_back_by_what_is_allowed_and_no_more(
    custodian: Custodian, beyond: timedelta, holds: bool
) -> None:
    custodian.open(OTHER)
    custodian.reserve(OTHER)
    dated(custodian, "reserve", opening(custodian, OTHER) - HOURS - beyond)
    custodian.seal(OTHER)
    assert ("A8" not in failures(custodian)) is holds


@pytest.mark.parametrize(("beyond", "holds"), [(timedelta(), True), (MOMENT, False)])
def test_a_clock_may_be_ahead_of_the_auditor_s_by_what_is_allowed_and_no_more(
    custodian: Custodian, beyond: timedelta, holds: bool
) -> None:
    ended = next(each.time for each in custodian.journal if each.action == "spend")
    archive = replace(custodian.archive(), time=ended - HOURS - beyond)
    assert ("A8" not in failures(custodian, archive)) is holds


def test_whoever_was_revoked_before_a_round_is_found_in_it_though_all_of_the_round_is_dated_back(
    custodian: Custodian,
) -> None:
    """By its times ann had a certificate, and no time contradicts another: the log's order tells."""
    before = custodian.time
    custodian.time += timedelta(days=30)
    custodian.revoke("ann")
    custodian.time += timedelta(days=30)
    custodian.open(OTHER)
    custodian.change_last("round", open_time=to_microseconds(before))
    custodian.listed[OTHER] = replace(custodian.listed[OTHER], open_time=to_microseconds(before))
    custodian.reserve(OTHER)
    dated(custodian, "reserve", before)
    custodian.seal(OTHER)
    assert failures(custodian) == {
        "A12": "entry 10 of the log (round-sealed): a workload of 'ann' was used, who had no certificate in force "
        "while the round was open"
    }
    custodian.admit("ann", event="renewed")
    assert failures(custodian).keys() == {"A12"}  # after the seal is too late


def test_a_certificate_that_is_issued_while_a_round_is_open_is_in_time(custodian: Custodian) -> None:
    custodian.revoke("ann")
    custodian.time += timedelta(days=1)
    custodian.open(OTHER)
    custodian.admit("ann", event="renewed")
    custodian.revoke("bob")
    custodian.reserve(OTHER)
    custodian.seal(OTHER)
    assert failures(custodian) == {}


def opening(custodian: Custodian, round_id: str) -> datetime:
    return from_microseconds(custodian.listed[round_id].open_time)


def found(custodian: Custodian, receipt: bytes) -> str:
    return failed_checks(verify(custodian.archive(), custodian.trusted, (), [receipt])).get("A11", "")


@pytest.mark.parametrize("beyond", [timedelta(), MOMENT])
def test_a_receipt_is_dated_while_its_round_was_open(custodian: Custodian, beyond: timedelta) -> None:
    now, commitment = custodian.time, custodian.commitment(ROUND, "ann")
    sealed = next(each.time for each in custodian.journal if each.action == "reserve")
    for time, words in (
        (
            opening(custodian, ROUND) - HOURS - beyond,
            "(round-opened): a receipt of 'ann' is dated 2025",
        ),
        (sealed + HOURS + beyond, "(round-sealed): a receipt of 'ann' is dated 2026"),
    ):
        custodian.time = time
        receipt = custodian.receipt(ROUND, "ann", commitment)
        custodian.time = now
        assert (words if beyond else "") in found(custodian, receipt)
        assert bool(found(custodian, receipt)) is bool(beyond)


def test_a_receipt_of_an_answer_is_dated_by_the_end_of_the_turn_after_which_the_session_was_sealed(
    custodian: Custodian,
) -> None:
    custodian.play_session(OTHER, turn_seconds=60)
    (sealed,) = (
        json.loads(each.items[1].content)["seal_time"]
        for each in custodian.records
        if each.kind == Kind.ROUND_SEALED and f'"round":"{OTHER}"'.encode() in each.items[0].content
    )
    last = sealed + to_microseconds(EPOCH + HOURS + timedelta(seconds=60))
    payload = SessionReceiptPayload("test", OTHER, "ann", 1, bytes(32), last, custodian.promise(OTHER))
    assert found(custodian, custodian.session_receipt(payload)) == ""
    late = custodian.session_receipt(replace(payload, time=last + 1))
    assert "(round-sealed): a receipt of 'ann' is dated" in found(custodian, late)
    early = to_microseconds(opening(custodian, OTHER) - HOURS - MOMENT)
    early_receipt = custodian.session_receipt(replace(payload, time=early))
    assert "(round-opened): a receipt of 'ann' is dated" in found(custodian, early_receipt)


def test_a_round_may_be_opened_after_another_has_ended_and_before_that_is_released(custodian: Custodian) -> None:
    """A release enters the log at a point of the grid, perhaps days after the round's end, whose time it says."""
    custodian.open(OTHER)
    custodian.reserve(OTHER)
    custodian.seal(OTHER)
    custodian.run(OTHER)
    custodian.settle(OTHER)
    custodian.time += timedelta(days=2)
    custodian.open("cc")
    custodian.release(OTHER)
    assert failures(custodian) == {}


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_clock_that_was_set_back_and_confirmed_is_remarked_and_times_begin_anew(
    custodian: Custodian, confirmed: bool
) -> None:
    """Without the confirmation on record the very same history is one that was dated back."""
    right = custodian.time
    custodian.time += timedelta(days=6)
    custodian.open(OTHER)
    ahead = custodian.receipt(OTHER, "ann", bytes(32))
    custodian.confirm_clock(right)
    if not confirmed:
        custodian.records.pop()
    behind = custodian.receipt(OTHER, "ann", custodian.commitment(OTHER, "ann"))
    custodian.reserve(OTHER)
    custodian.seal(OTHER)
    custodian.play("cc")
    audit = verify(custodian.archive(), custodian.trusted, (), [behind])
    assert failed_checks(audit).keys() == (set() if confirmed else {"A8", "A11"})
    if confirmed:
        (remark,) = audit.remarks
        assert "(clock-confirmed): the server's clock was confirmed at 2026-01-01 00:00:14 UTC, where" in remark
        # Nobody may date back further than to the time that was confirmed.
        custodian.time = right - timedelta(days=1)
        custodian.open("dd")
        assert "but came after" in failures(custodian)["A8"]
    # A receipt of the wrong clock stays the analyst's newest one.
    checks = failed_checks(verify(custodian.archive(), custodian.trusted, (), [ahead]))
    assert ("after the seal" in checks["A11"]) is not confirmed
