"""Divergences at a Renyi order: what parts add up to, and which orders serve a cap."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant
from dp_accounting.rdp.rdp_privacy_accountant import compute_delta
from harness.renyi_events import EVERY, PLAY, diverges

from equipoise.accounting import (
    DELTA_UNIT,
    RHO_UNIT,
    RenyiEvent,
    ThresholdTests,
    ZcdpEvent,
    charge_at,
    charge_of,
    events,
    events_from_json,
    events_to_json,
)
from equipoise.errors import InvalidArgument
from equipoise_server.conversion import epsilon_at, event_of
from equipoise_server.ledger.caps import Cap, at_order, checked_cap, epsilon_under, limits


@pytest.mark.parametrize("order", [1.25, 2.0, 8.0, 25.0, 257.0])
def test_parts_add_up_to_what_another_accountant_finds(order: float) -> None:
    counted = charge_at(EVERY, order)
    event, _, _ = event_of(EVERY[:2])
    accountant = RdpAccountant([order], NeighboringRelation.REPLACE_ONE).compose(event)
    apart = min(1 / 30, order / 30**2 / 2) + diverges(PLAY, order)
    # Pure parts are never above their epsilon, which the library's event for a rho does not know.
    spared = 7 * max(0.0, order * 0.02**2 / 2 - 0.02)
    for delta in (1e-6, 1e-9):
        most = accountant.get_epsilon(delta) + apart - spared
        assert epsilon_at(counted.divergence, order, delta) == pytest.approx(most, rel=1e-7)
    assert (counted.rho, counted.epsilon, counted.delta) == (0, 0, 10**9)


def covers(order: float) -> None:
    """Every kind of part counts at least what it diverges by, rounded up."""
    for made in ([part] for part in EVERY[:3]):
        exact = sum((part.divergence(Fraction(order))[0] for part in made), Fraction(0))
        assert charge_at(made, order).divergence - 1 < exact * RHO_UNIT <= charge_at(made, order).divergence
    assert charge_at(EVERY, order).divergence > charge_at(EVERY[:3], order).divergence
    assert charge_at(EVERY[3:], order).divergence >= diverges(PLAY, order) * RHO_UNIT
    assert charge_at(EVERY, order).delta == 10**9
    assert charge_at(EVERY[:1], order).divergence >= Fraction(order) * Fraction(3, 7000) * RHO_UNIT
    assert charge_at(EVERY[1:2], order).divergence >= Fraction(order) * 7 / 50**2 / 2 * RHO_UNIT


def test_faults_in_counting_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    covers(8.5)
    faults = {
        "rounded_up": lambda amount, unit: math.floor(Fraction(amount) * unit),
        "mixture_divergence": lambda *_: 0.0,
        "pure_divergence": lambda epsilon, order: order * epsilon**2 / 3,
    }
    for name, fault in faults.items():
        with monkeypatch.context() as patch:
            patch.setattr(events, name, fault)
            with pytest.raises(AssertionError):
                covers(8.5)
    with monkeypatch.context() as patch:
        patch.setattr(ZcdpEvent, "divergence", lambda self, _: (self.times * self.rho, Fraction(0)))
        with pytest.raises(AssertionError):
            covers(8.5)
    covers(8.5)


def test_parts_survive_their_json() -> None:
    tests = ThresholdTests("tests", 3, Fraction(1, 9), Fraction(1, 7), Fraction(2), Fraction(1, 10**7))
    made = (*EVERY, tests, RenyiEvent("written off", Fraction(8), Fraction(1, 3)))
    assert events_from_json(events_to_json("equilibrium", made)) == made
    assert charge_at(made[-1:], 8.0).divergence == 333_333_333_334
    assert charge_at(made[-1:], 2.0).divergence == 333_333_333_334
    with pytest.raises(ValueError, match="smaller Renyi order"):
        charge_at(made[-1:], 8.5)
    with pytest.raises(ValueError, match="Renyi order only"):
        charge_of(made[-1:])


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (4.0, 1e-6), (20.0, 1e-3), (0.1, 1e-9), (50.0, 1e-12)])
def test_a_limit_is_the_most_that_converts_to_the_cap(epsilon: float, delta: float) -> None:
    cap = at_order("cap", Cap(epsilon, delta), 0)
    limit, order = limits(cap), cap.order or math.nan
    assert limit.delta == round(delta * DELTA_UNIT) // 2
    assert (limit.rho, limit.epsilon) == (0, 0)
    left = delta - limit.delta / DELTA_UNIT
    assert compute_delta([order], [limit.divergence / RHO_UNIT], epsilon)[0] <= left
    assert epsilon_at(limit.divergence, order, left) <= epsilon
    assert epsilon_at(round(limit.divergence * (1 + 1e-6)), order, left) > epsilon
    assert epsilon_under(cap, limit) <= epsilon
    # The usual order allows nearly as much zCDP as the best order afterwards would.
    assert 0.9 * limits(Cap(epsilon, delta)).rho < limit.divergence / order < limits(Cap(epsilon, delta)).rho


@pytest.mark.parametrize("order", [1.0, -2.0, 1.001, 1e9, math.inf, math.nan, 229_378.0, 1.1])
def test_an_absurd_order_is_refused(order: float) -> None:
    with pytest.raises(InvalidArgument, match="data_order"):
        at_order("data_order", Cap(1.0, 1e-6), order)


@pytest.mark.parametrize(("cap", "usual"), [(Cap(3.0, 1e-11), 17), (Cap(1.0, 1e-6), 25), (Cap(10.0, 1e-6), 4)])
def test_an_order_that_is_useless_for_the_cap_is_refused_with_the_usual_one(cap: Cap, usual: float) -> None:
    told = rf"data_order: converting at order 2 takes .*; the usual order for this cap is {usual},"
    with pytest.raises(InvalidArgument, match=told):
        at_order("data_order", cap, 2)
    assert at_order("data_order", cap, usual) == at_order("data_order", cap)


def test_a_cap_too_small_for_any_order_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="data_order: converting at any order takes all of the cap"):
        at_order("data_order", checked_cap("cap", 1e-5, 1e-12), 0)
