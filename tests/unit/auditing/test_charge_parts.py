"""Which charges the journal may reduce, and to what."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from equipoise.accounting import Cost, PrivacyEvent, PureDpEvent, ZcdpEvent, charge_at, events_to_json
from equipoise.auditing.accounts import Accounts
from equipoise.auditing.charge_parts import is_part_of
from equipoise.errors import VerificationFailed
from equipoise.model.accounts import JournalEntry

PLANNED = ZcdpEvent("answers", Fraction(1, 10))
SPENT = ZcdpEvent("answers", Fraction(1, 30))
ORDER = 8.0


Step = tuple[str, str, Sequence[PrivacyEvent]]


def entries(*steps: Step) -> list[JournalEntry]:
    """A data account, and what a round does to it: actions, mechanisms and parts."""
    opening = {"cap": {"epsilon": 4.0, "delta": 1e-6}, "composition": "sum", "order": ORDER}
    made = [("open-account", "", json.dumps(opening), Cost())]
    made += [
        (action, "r", events_to_json(mechanism, parts), charge_at(parts, ORDER))
        for action, mechanism, parts in steps
    ]
    return [
        JournalEntry(i, datetime.now(UTC), action, "data/shop", round_id, cost, events, b"")
        for i, (action, round_id, events, cost) in enumerate(made, start=1)
    ]


def after(*steps: Step) -> Cost:
    accounts = Accounts()
    list(accounts.moments(entries(*steps)))
    return accounts.by_name["data/shop"].committed


def test_a_grant_alone_may_be_reduced_and_only_to_less() -> None:
    reserved = ("reserve", "grant", [PLANNED])
    assert after(reserved, ("reduce", "grant", [SPENT])) == charge_at([SPENT], ORDER)
    assert after(reserved, ("reduce", "grant", [])) == Cost()
    assert after(reserved, ("reduce", "grant", [SPENT]), ("spend", "grant", [SPENT])) == charge_at([SPENT], ORDER)
    for steps in (
        (reserved, ("reduce", "grant", [PLANNED])),
        (reserved, ("reduce", "grant", [ZcdpEvent("answers", Fraction(1, 5))])),
        (reserved, ("reduce", "grant", [ZcdpEvent("others", Fraction(1, 30))])),
        (reserved, ("reduce", "grant", [SPENT, SPENT])),
        (reserved, ("reduce", "grant", [SPENT]), ("spend", "grant", [PLANNED])),
        (reserved, ("spend", "grant", [PLANNED]), ("reduce", "grant", [SPENT])),
        (("reserve", "gaussian", [PLANNED]), ("reduce", "gaussian", [SPENT])),
        (("reduce", "grant", [SPENT]),),
    ):
        with pytest.raises(VerificationFailed, match="cannot follow"):
            after(*steps)


def test_only_zcdp_is_a_part_of_zcdp() -> None:
    assert is_part_of([], [PLANNED])
    assert not is_part_of([PureDpEvent("answers", Fraction(1, 30))], [PLANNED])
    assert not is_part_of([SPENT], [PureDpEvent("answers", Fraction(1, 10))])
