"""The auditor's own conversion against the server's, which is dp_accounting's."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from fractions import Fraction

import pytest
from harness.custodian import Custodian

from equipoise.accounting import (
    DELTA_UNIT,
    RHO_UNIT,
    ApproximateDpEvent,
    Cost,
    Mixture,
    PrivacyEvent,
    PureDpEvent,
    ThresholdTests,
    ZcdpEvent,
    charge_at,
    charge_of,
)
from equipoise.auditing import dp_accounting_check
from equipoise.auditing.accounts import SUM, WORST, Account, Charge
from equipoise.auditing.verify import Outcome, verify
from equipoise.errors import VerificationFailed
from equipoise.model.accounts import Budget
from equipoise.verification.conversion import epsilon_of, fits, limits_of
from equipoise_server.conversion import epsilon_for, epsilon_of_divergence
from equipoise_server.ledger import caps

PARTS = (
    ZcdpEvent("game", Fraction(1, 100), 3),
    PureDpEvent("detection", Fraction(1, 20), 30),
    ApproximateDpEvent("samplers", Fraction(1, 50), Fraction(1, 10**9)),
    Mixture("play", 1000, Fraction(1, 100), Fraction(1, 10**5), Fraction(1, 2), Fraction(1, 10**8)),
)


@pytest.mark.parametrize("delta", [0.0, 1e-12, 1e-6, 0.01, 0.5, 0.999999])
@pytest.mark.parametrize("rho", [0, 1, 10**4, 10**9, 10**12, 12 * 10**12, 5 * 10**13])
def test_rhos_and_pairs_convert_as_the_library_does(rho: int, delta: float) -> None:
    cost = Cost(rho=rho, epsilon=3 * 10**11, delta=10**5)
    for each in (cost, Cost(rho=rho)):
        assert epsilon_of(each, delta, None) == pytest.approx(epsilon_for(each, delta), rel=1e-12)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.5])
@pytest.mark.parametrize("order", [1 + 2.0**-6, 5.0, 300.0])
@pytest.mark.parametrize("divergence", [0, 1, 10**9, 10**13])
def test_divergences_convert_as_the_library_does(divergence: int, order: float, delta: float) -> None:
    cost = Cost(delta=10**4, divergence=divergence)
    expected = epsilon_of_divergence(cost, order, delta)
    assert epsilon_of(cost, delta, order) == pytest.approx(expected, rel=1e-12)
    assert epsilon_of(replace(cost, delta=10**18), delta, order) == math.inf


@pytest.mark.parametrize("order", [None, 8.0, 100.0])
@pytest.mark.parametrize("cap", [caps.Cap(1.0, 1e-6), caps.Cap(8.0, 1e-4)])
def test_what_the_ledger_s_limits_allow_fits_and_hardly_more(cap: caps.Cap, order: float | None) -> None:
    held = replace(cap, order=order)
    limit = caps.limits(held)
    for name in ("rho", "epsilon", "delta", "divergence"):
        most = getattr(limit, name)
        if most:
            assert fits(Cost(**{name: most}), cap.epsilon, cap.delta, order)
            assert not fits(Cost(**{name: most + most // 10**6 + 1}), cap.epsilon, cap.delta, order)
        elif order is not None:
            # At an order nothing else counts, so nothing else may be charged.
            assert not fits(Cost(**{name: 1}), cap.epsilon, cap.delta, order)


def test_without_a_delta_only_nothing_converts_at_an_order() -> None:
    assert epsilon_of(Cost(), 0.0, 5.0) == 0
    assert epsilon_of(Cost(divergence=1), 0.0, 5.0) == math.inf


@pytest.mark.parametrize("order", [1.5, 8.0, 100.0])
@pytest.mark.parametrize("cap", [(1.0, 1e-6), (3.0, 1e-11), (8.0, 0.4)])
def test_the_limits_of_an_order_are_those_of_the_ledger(cap: tuple[float, float], order: float) -> None:
    limit = caps.limits(caps.Cap(*cap, order))
    divergence, delta = limits_of(*cap, order)
    assert divergence == pytest.approx(limit.divergence / RHO_UNIT, rel=1e-6, abs=1e-9)
    assert delta == limit.delta / DELTA_UNIT


def account(composition: str) -> Account:
    order = 8.0 if composition == SUM else None
    cost = charge_of(PARTS) if order is None else charge_at(PARTS, order)
    charges = {name: Charge("spent", cost, PARTS, "equilibrium") for name in ("a", "b")}
    committed = cost + cost if composition == SUM else Cost()
    return Account("data/x", composition, Budget(20.0, 1e-6), order, charges, committed=committed)


OF_EVERY_KIND = (
    *PARTS,
    PureDpEvent("large", Fraction(3)),
    PureDpEvent("beyond doubles", Fraction(900), 2),
    Mixture("rare", 10**5, Fraction(1, 10**4), Fraction(1, 10**6), Fraction(1, 2), Fraction(1, 10**8)),
    Mixture("all", 10, Fraction(1), Fraction(1, 10**3), Fraction(1, 2), Fraction(1, 10**8)),
    ThresholdTests("tests", 5, Fraction(1, 100), Fraction(1, 1000), Fraction(3), Fraction(1, 10**9)),
    ThresholdTests("tiny", 5, Fraction(1, 10**6), Fraction(0), Fraction(3), Fraction(1, 10**9)),
    ThresholdTests("pair", 1, Fraction(1, 20), Fraction(0), Fraction(1, 20), Fraction(1, 25)),
    ThresholdTests("wide", 5, Fraction(1, 2), Fraction(1, 1000), Fraction(3), Fraction(1, 10**9)),
)


@pytest.mark.parametrize("order", [1 + 2.0**-6, 1.5, 8.0, 70.0, 1e5])
@pytest.mark.parametrize("part", OF_EVERY_KIND, ids=lambda part: f"{part.event} {part.name}")
def test_the_library_comes_to_each_part_s_divergence_or_just_below(part: PrivacyEvent, order: float) -> None:
    """Below by no more than what the bound of a pure mechanism gives away."""
    library = dp_accounting_check.Library()
    accountant = library.accountant(order)
    delta = dp_accounting_check.compose(library, accountant, part, 1, order)
    bound, counted = part.divergence(Fraction(order))
    found = (accountant.get_epsilon(1e-9) - _at_nothing(library, order)) if bound else 0.0
    assert delta == counted
    pure = isinstance(part, PureDpEvent | ApproximateDpEvent)
    assert float(bound) * (0.75 if pure else 0.999) - 1e-9 <= found <= float(bound) * (1 + 1e-9) + 1e-9


def _at_nothing(library: dp_accounting_check.Library, order: float) -> float:
    """What the conversion adds to a divergence at one order."""
    accountant = library.accountant(order)
    accountant.compose(library.event.ZCDpEvent(1.0))
    return float(accountant.get_epsilon(1e-9)) - order


@pytest.mark.slow
@pytest.mark.parametrize("composition", [SUM, WORST])
def test_the_library_comes_to_the_same_totals(composition: str) -> None:
    held = account(composition)
    dp_accounting_check.check_totals({held.name: held})


@pytest.mark.slow
@pytest.mark.parametrize("composition", [SUM, WORST])
def test_a_charge_that_counts_too_little_is_found_by_the_library(composition: str) -> None:
    held = account(composition)
    held.committed = replace(held.committed, divergence=held.committed.divergence // 2)
    for charge in held.charges.values():
        charge.cost = replace(charge.cost, rho=charge.cost.rho // 2)
    with pytest.raises(VerificationFailed, match=r"^data/x: dp_accounting comes to epsilon"):
        dp_accounting_check.check_totals({held.name: held})


@pytest.mark.parametrize("part", [ZcdpEvent("updates", Fraction(1, 8), 0), PureDpEvent("tests", Fraction(1, 8), 0)])
def test_the_library_counts_nothing_for_what_was_never_used(part: PrivacyEvent) -> None:
    """A session that ends early settles parts of which no mechanism was run; an audit of it failed."""
    library = dp_accounting_check.Library()
    accountant = library.accountant(2.0)
    assert dp_accounting_check.compose(library, accountant, part, 1, 2.0) == 0
    assert accountant.get_epsilon(1e-9) == library.accountant(2.0).get_epsilon(1e-9)


def test_without_the_library_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine of an auditor's who has only the client."""
    for name in ("dp_accounting", "dp_accounting.rdp"):
        monkeypatch.setitem(sys.modules, name, None)
    custodian = Custodian()
    custodian.register()
    custodian.play("aa")
    (check,) = [each for each in verify(custodian.archive(), custodian.trusted).checks if each.number == "A6b"]
    assert check.outcome is Outcome.NOT_CHECKED
    assert "pip install 'equipoise[audit]'" in check.detail
