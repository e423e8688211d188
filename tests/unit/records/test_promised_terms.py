"""Each term that a receipt promises is compared with what the analyst was shown, and with what a dry run told."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from harness.shown_rounds import PROMISE, ROUND

from equipoise.accounting import Cost
from equipoise.errors import VerificationFailed
from equipoise.model.accounts import Budget, Danger
from equipoise.model.rounds import Ending, SessionTerms
from equipoise.records.item_parts import RecordedSession
from equipoise.records.promises import Promise, ToldErrors, check_shown, check_told

SESSION = RecordedSession(Ending.STOP, 8, 1, 60)
SHOWN = replace(
    ROUND,
    terms=replace(
        ROUND.terms,
        session=SessionTerms(length=8, turn_seconds=60, ending=Ending.STOP),
        close_time=datetime(2026, 1, 3, tzinfo=UTC),
        accepted=(Danger.EPSILON,),
    ),
)
CLOSE_TIME = 1767398400 * 10**6  # 2026-01-03 00:00 UTC
SIGNED = replace(PROMISE, session=SESSION, close_time=CLOSE_TIME, accepted=(Danger.EPSILON,))
# What the analyst is not shown before it asks; the opening's record has it.
NOT_SHOWN: dict[str, Any] = {
    "opened_root": bytes([1]) * 32,
    "analyst_cost": Cost(rho=1),
    "max_half_width": 0.2,
    "max_uncertified": 1,
}
OTHERS: list[tuple[str, Any]] = [
    ("dataset", "market"),
    ("dataset_version", 2),
    ("records", 1001),
    ("mechanism", "laplace"),
    ("unit", "analyst"),
    ("data_budget", Budget(1.0, 1e-7)),
    ("analyst_budget", None),
    ("beta", 0.06),
    ("seed_commitment", bytes([1]) * 32),
    ("close_time", CLOSE_TIME + 1),
    ("release_grid_seconds", 60),
    ("accepted", ()),
    ("session", replace(SESSION, length=9)),
    ("session", replace(SESSION, turn_seconds=61)),
    ("session", replace(SESSION, ending=Ending.HYPOTHESIS)),
    ("session", None),
]


def test_a_promise_of_what_was_shown_is_taken() -> None:
    check_shown(SIGNED, SHOWN)
    check_shown(replace(SIGNED, **NOT_SHOWN), SHOWN)
    names = {field.name for field in dataclasses.fields(Promise)}
    assert names == {*NOT_SHOWN, *(name for name, _ in OTHERS)}


@pytest.mark.parametrize(("name", "other"), OTHERS)
def test_a_promise_of_another_term_than_was_shown_is_refused(name: str, other: Any) -> None:
    said = name.replace("_", " ")
    with pytest.raises(VerificationFailed, match=rf"the receipt promises the {said}.* was shown to you"):
        check_shown(replace(SIGNED, **{name: other}), SHOWN)


@pytest.mark.parametrize("name", ["max_half_width", "max_uncertified"])
def test_a_promise_of_other_errors_than_were_told_is_refused(name: str) -> None:
    told = ToldErrors(SIGNED.max_half_width, SIGNED.max_uncertified)
    check_told(SIGNED, told)
    with pytest.raises(VerificationFailed, match="was told by the dry run"):
        check_told(replace(SIGNED, **{name: NOT_SHOWN[name]}), told)
