"""The auditor's check of plans: each cost within its budget, made of parts that follow, the same for all."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from harness import custodian as custodian_module
from harness.audit_failures import failures
from harness.custodian import ANALYST_PARTS, BUDGET, DATA_PARTS, ORDER, SESSION, Custodian

from equipoise.accounting import Cost, PrivacyEvent, ThresholdTests, ZcdpEvent, charge_at, charge_of, events_to_json
from equipoise.auditing import accounts
from equipoise.auditing.verify import verify
from equipoise.verification.conversion import epsilon_of

ROUND = "aa"
GIVEN = 10**9  # units of 10^-12 of rho


def rho_of(epsilon: float) -> Fraction:
    """The largest rho, on its grid, that converts to at most this epsilon at the budget's delta."""
    low, high = 0, 10**12
    while high - low > 1:
        middle = (low + high) // 2
        within = epsilon_of(Cost(rho=middle), BUDGET["delta"], None) <= epsilon
        low, high = (middle, high) if within else (low, middle)
    return Fraction(low, 10**12)


@pytest.mark.parametrize("side", ["analyst", "data"])
@pytest.mark.parametrize(("epsilon", "holds"), [(1.0, True), (1 + 1e-6, False), (1.05, False)])
def test_a_plan_costs_no_more_than_its_round_s_budget(
    monkeypatch: pytest.MonkeyPatch, side: str, epsilon: float, holds: bool
) -> None:
    parts: tuple[PrivacyEvent, ...] = (ZcdpEvent("game", rho_of(epsilon)),)
    monkeypatch.setattr(custodian_module, f"{side.upper()}_PARTS", parts)
    custodian = Custodian()
    custodian.register()
    custodian.play(ROUND)
    words = f"beyond the round's {side} budget of 1"
    assert (words in failures(custodian).get("A9", "")) is not holds


@pytest.mark.parametrize("side", ["analyst", "data"])
@pytest.mark.parametrize(("delta", "holds"), [(Fraction(1, 10**7), True), (Fraction(1, 10**12), False)])
def test_the_pair_that_stands_for_tests_follows_from_them(
    monkeypatch: pytest.MonkeyPatch, side: str, delta: Fraction, holds: bool
) -> None:
    """Ten tests of epsilon 1/100 are (2/5, 10^-7)-private; whoever writes down 10^-12 charges too little."""
    tests = ThresholdTests("tests", 10, Fraction(1, 100), Fraction(0), Fraction(2, 5), delta)
    monkeypatch.setattr(custodian_module, f"{side.upper()}_PARTS", (tests,))
    custodian = Custodian()
    custodian.register()
    custodian.play(ROUND)
    assert ("from the sum of its parts" in failures(custodian).get("A6", "")) is not holds


def charged(more: int, announced: float = ORDER) -> Custodian:
    """A round that protects whole analysts, in which the second one is charged some units of divergence more."""
    custodian = Custodian()
    custodian.register()
    for analyst in ("ann", "bob"):
        custodian.open_account(f"analyst/shop/analyst/{analyst}", "sum", 3.0, ORDER)
    custodian.open(ROUND)
    custodian.change_last("round", unit="analyst", analyst_order=announced)
    custodian.change_last("plan", terms={"unit": "analyst"})
    custodian.append(
        "reserve", "data/shop", ROUND, charge_at(DATA_PARTS, ORDER), events_to_json("equilibrium", DATA_PARTS)
    )
    events = events_to_json("equilibrium", ANALYST_PARTS)
    for analyst, beyond in (("ann", 0), ("bob", more)):
        due = charge_at(ANALYST_PARTS, ORDER)
        due = replace(due, divergence=due.divergence + beyond)
        custodian.append("reserve", f"analyst/shop/analyst/{analyst}", ROUND, due, events)
        custodian.append("reserve", f"analyst/shop/query/{analyst}", ROUND, charge_of(ANALYST_PARTS), events)
    custodian.seal(ROUND)
    return custodian


def test_all_analysts_are_charged_the_same_to_the_unit() -> None:
    """A unit more is what another machine could round to, but no custodian chooses which analyst pays it."""
    assert not failures(charged(0))
    assert failures(charged(1)) == {"A9": "entry 6 of the log (round-sealed): does not charge all analysts alike"}


@pytest.mark.parametrize("announced", [ORDER - 1, ORDER + 1])
def test_accounts_count_at_the_order_that_analysts_were_told(announced: float) -> None:
    problem = "analyst/shop/analyst/ann counts at another order than the record says"
    assert failures(charged(0, announced)) == {"A9": f"entry 5 of the log (round-opened): {problem}"}


@pytest.mark.parametrize(("part", "holds"), [(1.0, True), (0.999, False)])
def test_a_second_accountant_objects_where_the_first_one_counts_too_little(
    monkeypatch: pytest.MonkeyPatch, part: float, holds: bool
) -> None:
    """A fault of the auditor's own conversion, which no custodian's lie could show."""
    custodian = Custodian()
    custodian.register()
    custodian.play(ROUND)
    monkeypatch.setattr(accounts, "epsilon_of", lambda *amounts: part * epsilon_of(*amounts))
    assert ("dp_accounting comes to epsilon" in failures(custodian).get("A6b", "")) is not holds


def test_only_a_session_may_leave_its_analysts_without_a_budget() -> None:
    """Record, plan and charges agree that nothing of theirs is protected; but a round must be."""
    custodian = Custodian()
    custodian.register()
    custodian.unprotected.add(ROUND)
    custodian.play(ROUND)
    assert failures(custodian) == {
        "A9": "entry 5 of the log (round-opened): analysts have a cost without a budget, or a budget without a cost"
    }


def dangerous(*accepted: str, shown: tuple[str, ...] | None = None) -> Custodian:
    """A round that is expected to err by a quarter of a record, and names these dangers on record."""
    custodian = Custodian()
    custodian.register()
    custodian.open(ROUND)
    custodian.change_last("plan", plan={"expected_error": 0.25 / 400}, terms={"accepted": list(accepted)})
    custodian.change_last("round", accepted=list(accepted if shown is None else shown))
    return custodian


def test_a_danger_that_nobody_has_accepted_fails() -> None:
    told = failures(dangerous())["A9"]
    assert "nobody has accepted its dangers: answers are expected to err by 0.25 records" in told
    assert "nobody has accepted" in failures(dangerous("promise"))["A9"]
    assert "A9" not in failures(dangerous("noise"))


def test_what_analysts_are_shown_of_dangers_is_what_was_accepted() -> None:
    assert "the terms differ" in failures(dangerous("noise", shown=()))["A9"]


def test_a_danger_that_was_accepted_is_remarked() -> None:
    custodian = dangerous("noise", "epsilon")
    remarks = verify(custodian.archive(), custodian.trusted).remarks
    said = f"the round {ROUND} (equilibrium) was opened with the danger noise: answers are expected to err by"
    assert [each for each in remarks if "danger" in each and each.startswith(said)]
    assert not [each for each in remarks if "danger epsilon" in each]  # the budget has none


def grant(spent: int | None, charged: int, mechanism: str = "grant") -> Custodian:
    """A released grant of all of `GIVEN`: what its release says was spent, and what the data account is charged."""
    custodian, account = Custodian(), "data/shop"
    custodian.register()
    (whole,) = custodian_module.DATA_PARTS
    some = [ZcdpEvent("answers", Fraction(charged, 10**12))] if charged else []
    custodian.unprotected.add(ROUND)
    custodian.append("reserve", account, ROUND, charge_at([whole], ORDER), events_to_json("grant", [whole]))
    custodian.append("run", account, ROUND, Cost(), json.dumps({"round": ROUND}))
    custodian.open(ROUND, ("ann",), session={**SESSION, "turn_seconds": 0})
    custodian.change_last("round", mechanism=mechanism)
    custodian.change_last("plan", plan={"mechanism": mechanism}, terms={"mechanism": mechanism})
    custodian.seal(ROUND)
    if charged < GIVEN:
        custodian.append("reduce", account, ROUND, charge_at(some, ORDER), events_to_json("grant", some))
    custodian.append("spend", account, ROUND, charge_at(some, ORDER), events_to_json("grant", some))
    custodian.release(ROUND)
    custodian.change_last("release", spent=spent)
    return custodian


@pytest.mark.parametrize("spent", [0, 1, GIVEN - 1, GIVEN])
def test_a_grant_is_charged_what_its_release_says_was_spent_to_the_unit(
    monkeypatch: pytest.MonkeyPatch, spent: int
) -> None:
    monkeypatch.setattr(custodian_module, "DATA_PARTS", (ZcdpEvent("answers", Fraction(GIVEN, 10**12)),))
    assert failures(grant(spent, spent)) == {}
    for charged in (each for each in (spent - 1, spent + 1) if 0 <= each <= GIVEN):
        assert "was spent, and data/shop is charged another sum" in failures(grant(spent, charged))["A9"]
    assert "does not say what a grant has spent" in failures(grant(None, spent))["A9"]


def test_no_other_round_says_that_it_has_spent_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custodian_module, "DATA_PARTS", (ZcdpEvent("answers", Fraction(GIVEN, 10**12)),))
    assert failures(grant(None, GIVEN, "online")) == {}
    assert "or says it of another round" in failures(grant(GIVEN, GIVEN, "online"))["A9"]
