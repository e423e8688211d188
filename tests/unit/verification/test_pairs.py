"""No part can name a smaller pair than follows from its numbers: auditor and verifier derive each anew."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from harness import custodian as custodian_module
from harness.custodian import Custodian
from harness.small_custodian import Told
from harness.verifying import found, log_of

from equipoise.accounting import (
    BinomialMixture,
    Mixture,
    PrivacyEvent,
    ThresholdTests,
    ZcdpEvent,
    charge_at,
    charge_of,
    events_to_json,
)
from equipoise.auditing.accounts import Accounts
from equipoise.auditing.charge_parts import is_cost_of, is_cost_of_events
from equipoise.auditing.plan_checks import check_budgets
from equipoise.auditing.rounds import read_rounds
from equipoise.auditing.steps import open_steps
from equipoise.auditing.verify import Outcome, verify
from equipoise.errors import VerificationFailed
from equipoise.verification.checks import Check
from equipoise.verification.pairs import mixture_delta, pair_holds
from equipoise_server import conversion

# A thousand coins decide, and half of them is a loss of rho 250,000: nothing is hidden at all.
LIE = Mixture("game", 1000, Fraction(1, 2), Fraction(1), Fraction(1, 100), Fraction(0))
PLAYED = BinomialMixture(1000, 0.01, 1e-5)
TRUTH = Mixture(
    "game",
    PLAYED.trials,
    Fraction(PLAYED.probability),
    Fraction(PLAYED.rho_of_one),
    Fraction(1, 2),
    Fraction(conversion.mixture_delta(PLAYED, 0.5)),
)
TESTS = ThresholdTests("tests", 20, Fraction(1, 5), Fraction(1, 50), Fraction(1, 10), Fraction(1, 10**9))
LIES: dict[str, PrivacyEvent] = {
    "a mixture that hides nothing": LIE,
    "a mixture's delta halved": replace(TRUTH, delta=TRUTH.delta / 2),
    "a mixture's epsilon less a tenth": replace(TRUTH, epsilon=Fraction(45, 100)),
    "tests against a threshold": TESTS,
}


def outcomes(custodian: Custodian) -> dict[str, Outcome]:
    return {each.number: each.outcome for each in verify(custodian.archive(), custodian.trusted).checks}


def played(monkeypatch: pytest.MonkeyPatch, data: PrivacyEvent | None, analyst: PrivacyEvent | None) -> Custodian:
    """A custodian with one round in which these parts are planned and charged, everything else being in order."""
    if data is not None:
        monkeypatch.setattr(custodian_module, "DATA_PARTS", (data,))
    if analyst is not None:
        monkeypatch.setattr(custodian_module, "ANALYST_PARTS", (analyst,))
    custodian = Custodian()
    custodian.register()
    custodian.play("aa")
    return custodian


def check_a9(custodian: Custodian) -> None:
    """A9 by itself: where A6 has failed, the audit does not come to it."""
    archive, accounts = custodian.archive(), Accounts()
    assert list(accounts.moments(archive.journal))
    check_budgets(read_rounds(open_steps(archive.records, archive.leaves)), accounts)


def test_the_lie_is_one() -> None:
    assert mixture_delta(BinomialMixture(1000, 0.5, 1.0), 0.01) == pytest.approx(1.0)
    assert conversion.mixture_delta(BinomialMixture(1000, 0.5, 1.0), 0.01) == 1.0


@pytest.mark.parametrize("side", ["data", "analyst"])
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_an_audit_finds_a_pair_that_does_not_follow(
    lie: PrivacyEvent, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A6 and A9 can tell. A7 cannot, but where rounds add it counts what a mixture is made of, and not its pair."""
    data, analyst = (lie, None) if side == "data" else (None, lie)
    custodian = played(monkeypatch, data, analyst)
    made = outcomes(custodian)
    beyond_the_cap = lie == LIE and side == "data"
    assert made["A7"] is (Outcome.FAILED if beyond_the_cap else Outcome.PASSED)
    assert (made["A6"], made["A9"]) == (Outcome.FAILED, Outcome.NOT_CHECKED)
    with pytest.raises(VerificationFailed, match=f"the {side} cost is not the sum of its parts"):
        check_a9(custodian)


def test_an_audit_passes_a_pair_that_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    custodian = played(monkeypatch, TRUTH, TRUTH)
    assert all(outcomes(custodian)[number] is Outcome.PASSED for number in ("A6", "A6b", "A7", "A8", "A9"))
    check_a9(custodian)


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_verify_finds_a_pair_that_does_not_follow(lie: PrivacyEvent) -> None:
    assert found(Told(parts=(lie,)).bundle(log_of())) is Check.CHARGE


def test_verify_passes_a_pair_that_follows() -> None:
    assert found(Told(parts=(TRUTH, ZcdpEvent("more", Fraction(1, 100)))).bundle(log_of())) is None


@pytest.mark.parametrize("order", [None, 8.0])
def test_a_charge_with_such_a_part_is_not_made_of_it_however_the_account_counts(order: float | None) -> None:
    for part in (TRUTH, LIE):
        cost = charge_of([part]) if order is None else charge_at([part], order)
        assert is_cost_of((part,), cost, order) is (part is TRUTH)


@pytest.mark.parametrize(
    "odd",
    [
        replace(TRUTH, trials=10**400),
        replace(TRUTH, trials=1 << 60),
        replace(TRUTH, trials=1 << 54, probability=Fraction(1, 1 << 60), delta=Fraction(1, 2)),
        replace(TRUTH, probability=Fraction(10**400)),
        replace(TRUTH, probability=Fraction(3)),
        replace(TRUTH, rho_of_one=Fraction(10**400)),
        replace(TRUTH, rho_of_one=Fraction(10**300)),
        replace(TRUTH, epsilon=Fraction(10**400)),
        replace(TRUTH, epsilon=Fraction(2**1024 - 2**970), delta=Fraction(0)),
        replace(TRUTH, delta=Fraction(1, 10**400)),
        replace(TESTS, positives=10**400),
        replace(TESTS, test_epsilon=Fraction(10**300)),
    ],
)
def test_numbers_that_are_beyond_all_sense_prove_nothing(odd: Mixture | ThresholdTests) -> None:
    assert not pair_holds(odd)


def test_what_cannot_differ_costs_nothing_and_what_must_costs_all() -> None:
    never = replace(TRUTH, probability=Fraction(0), delta=Fraction(0), epsilon=Fraction(0))
    assert pair_holds(never)
    assert pair_holds(replace(never, trials=0, probability=Fraction(1, 2)))
    always = replace(TRUTH, probability=Fraction(1))
    assert pair_holds(replace(always, delta=Fraction(conversion.delta_of_rho(1000**2 * 1e-5, 0.5))))
    assert not pair_holds(always)
    assert pair_holds(replace(always, delta=Fraction(1)))


def test_trials_beyond_what_a_double_counts_prove_nothing_and_too_many_to_sum_are_all_taken_to_differ() -> None:
    few = replace(TRUTH, trials=1 << 53, probability=Fraction(1, 1 << 60), delta=Fraction(1, 2))
    assert pair_holds(few)
    # Of these 2^40 trials 2^33 differ, which loses nothing; all of them lose everything.
    assert mixture_delta(BinomialMixture(1 << 40, 2.0**-7, 1e-22), 0.5) == 1.0


def test_what_is_left_out_of_the_sum_is_not_free() -> None:
    """All 100,000 draws may differ, and what that loses is beyond every epsilon here."""
    assert 0 < mixture_delta(BinomialMixture(10**5, 0.5, 1e-6), 1e100) < 1e-300


@pytest.mark.parametrize("events", ["", "[]", "{}", '{"events":[{"event":"pair"}]}', '{"events":[{"event":1}]}'])
def test_what_are_no_parts_come_to_nothing(events: str) -> None:
    assert not is_cost_of_events(events, charge_of([]), None)
    assert is_cost_of_events(events_to_json("equilibrium", []), charge_of([]), None)
