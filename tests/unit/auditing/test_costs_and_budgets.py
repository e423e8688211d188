"""Records that a custodian signs and that no honest one writes: the audit fails in words and never ends early."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from harness import custodian as custodian_module
from harness.audit_failures import failures
from harness.custodian import Custodian

from equipoise.accounting import ZcdpEvent

COSTLY = (ZcdpEvent("game", Fraction(1, 10)),)  # epsilon 2.1 at the budget's delta, where the budget is 1


def with_changes(monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[Custodian], None]) -> None:
    """Let a custodian change its newest record after it has opened a round or a session."""
    honest: Any = getattr(Custodian, name)

    def opened(self: Custodian, *arguments: Any, **options: Any) -> Any:
        result = honest(self, *arguments, **options)
        change(self)
        return result

    monkeypatch.setattr(Custodian, name, opened)


def test_a_cost_beyond_the_budget_cannot_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custodian_module, "ANALYST_PARTS", COSTLY)

    def leave_out(custodian: Custodian) -> None:
        custodian.change_last("round", analyst_cost=None)
        custodian.change_last("plan", plan={"analyst_cost": None})

    with_changes(monkeypatch, "open", leave_out)
    custodian = Custodian()
    custodian.register()
    custodian.play("aa")
    assert "a cost without a budget, or a budget without a cost" in failures(custodian)["A9"]


def test_events_that_are_not_json_fail_and_end_no_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(custodian: Custodian) -> None:
        custodian.change_last("plan", plan={"analyst_events": "not JSON"})

    with_changes(monkeypatch, "open_session", spoil)
    custodian = Custodian()
    custodian.register()
    custodian.open_session("cc")
    assert failures(custodian)["A9"] == "a record is malformed"
