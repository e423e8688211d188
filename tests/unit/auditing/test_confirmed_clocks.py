"""A clock that was confirmed excuses times on its own side alone: what came before it, or what comes after."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from harness.audit_failures import failed_checks, failures
from harness.custodian import Custodian
from harness.record_book import rechained

from equipoise.auditing.verify import verify

ROUND, OTHER = "aa", "bb"
DAYS = timedelta(days=6)
FAR_OFF = datetime(2199, 1, 1, tzinfo=UTC)


def found(custodian: Custodian, receipt: bytes) -> str:
    return failed_checks(verify(custodian.archive(), custodian.trusted, (), [receipt])).get("A11", "")


@pytest.mark.parametrize("opened_before", [True, False])
def test_a_receipt_before_the_opening_is_excused_by_a_clock_that_is_confirmed_after_it_alone(
    custodian: Custodian, opened_before: bool
) -> None:
    right = custodian.time
    custodian.time += DAYS
    if opened_before:
        custodian.open(OTHER)
        custodian.confirm_clock(right)
    else:
        custodian.confirm_clock(right)
        custodian.time += DAYS
        custodian.open(OTHER)
    custodian.time, now = right, custodian.time
    receipt = custodian.receipt(OTHER, "ann", custodian.commitment(OTHER, "ann"))
    custodian.time = now
    assert ("before the opening" in found(custodian, receipt)) is not opened_before
    assert (found(custodian, receipt) == "") is opened_before


@pytest.mark.parametrize("sealed_after", [True, False])
def test_a_receipt_after_the_seal_is_excused_by_a_clock_that_is_confirmed_before_it_alone(
    custodian: Custodian, sealed_after: bool
) -> None:
    right = custodian.time
    custodian.open(OTHER)
    if not sealed_after:
        custodian.reserve(OTHER)
        custodian.seal(OTHER)
    custodian.time += DAYS
    receipt = custodian.receipt(OTHER, "ann", custodian.commitment(OTHER, "ann"))
    custodian.confirm_clock(right + timedelta(hours=1))
    if sealed_after:
        custodian.reserve(OTHER)
        custodian.seal(OTHER)
    assert ("after the seal" in found(custodian, receipt)) is not sealed_after
    assert (found(custodian, receipt) == "") is sealed_after


def test_a_step_in_the_future_is_not_excused_by_a_clock_that_was_confirmed_before_it(custodian: Custodian) -> None:
    custodian.confirm_clock(custodian.time)
    custodian.play(OTHER)
    assert failures(custodian) == {}
    custodian.open("cc")
    custodian.reserve("cc")
    custodian.seal("cc")
    custodian.run("cc")
    custodian.settle("cc")
    custodian.journal = rechained(
        [
            replace(each, time=FAR_OFF) if (each.action, each.round_id) == ("spend", "cc") else each
            for each in custodian.journal
        ]
    )
    custodian.release("cc")
    words = "(round-released): is dated 2199-01-01 00:00:00 UTC, but the archive was downloaded at"
    assert words in failures(custodian)["A8"]
