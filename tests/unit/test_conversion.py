"""Conversion to (epsilon, delta): agreement with the exact Gaussian mechanism, inverses, and the mixture."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from fractions import Fraction

import pytest
from dp_accounting.dp_event import ComposedDpEvent, DiscreteLaplaceDpEvent, GaussianDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant, rdp_privacy_accountant
from scipy import stats

from equipoise.accounting import (
    RHO_UNIT,
    ApproximateDpEvent,
    BinomialMixture,
    Cost,
    PrivacyEvent,
    PureDpEvent,
    RenyiCurve,
    ZcdpEvent,
    charge_of,
    gaussian_rho,
    mixture_curve,
    zcdp_curve,
)
from equipoise_server.conversion import (
    ORDERS,
    delta_of_rho,
    epsilon_for,
    epsilon_of_curve,
    epsilon_of_rho,
    event_of,
    largest_rho,
    mixture_delta,
)


def gaussian_delta(rho: float, epsilon: float) -> float:
    """Delta of a Gaussian mechanism that is exactly rho-zCDP (Balle & Wang 2018, Theorem 8)."""
    mu = math.sqrt(2 * rho)
    normal = stats.norm
    return float(normal.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal.cdf(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize("rho", [1e-4, 1e-2, 0.3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_delta_covers_the_gaussian_mechanism(rho: float, epsilon: float) -> None:
    assert delta_of_rho(rho, epsilon) >= gaussian_delta(rho, epsilon)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (1.0, 8.8e-12), (0.1, 1e-9), (8.0, 1e-5)])
def test_largest_rho_is_the_largest(epsilon: float, delta: float) -> None:
    rho = largest_rho(epsilon, delta)
    assert epsilon_of_rho(rho / RHO_UNIT, delta) <= epsilon < epsilon_of_rho((rho + 1) / RHO_UNIT, delta)


def test_few_orders_certify_what_all_of_them_do() -> None:
    """To the last bit, from the smallest divergences to those that hide nothing."""
    draw = random.Random(5)
    for _ in range(150):
        rho, delta, epsilon = 10 ** draw.uniform(-15, 6), 10 ** draw.uniform(-30, -0.01), 10 ** draw.uniform(-8, 6)
        divergences = [order * rho for order in ORDERS]
        assert epsilon_of_rho(rho, delta) == rdp_privacy_accountant.compute_epsilon(ORDERS, divergences, delta)[0]
        for given in (0.0, epsilon):
            bound = rdp_privacy_accountant.compute_delta(ORDERS, divergences, given)[0]
            assert delta_of_rho(rho, given) == min(1.0, bound)


def test_a_cost_takes_its_own_delta_first() -> None:
    assert epsilon_for(Cost(delta=11), 10e-18) == math.inf
    assert epsilon_for(Cost(epsilon=RHO_UNIT, delta=5), 10e-18) == 1.0
    assert epsilon_for(Cost(rho=RHO_UNIT // 100), 1e-6) == epsilon_of_rho(0.01, 1e-6)
    assert epsilon_for(Cost(rho=1), 0.0) == math.inf


def test_mixture_is_the_sum_over_the_binomial_law() -> None:
    mixture = BinomialMixture(trials=40, probability=0.1, rho_of_one=0.002)
    summed = sum(stats.binom.pmf(w, 40, 0.1) * delta_of_rho(w * w * 0.002, 0.5) for w in range(41))
    assert summed <= mixture_delta(mixture, 0.5) <= summed * (1 + 1e-6)


def test_mixture_with_certain_draws_is_plain() -> None:
    assert mixture_delta(BinomialMixture(10, 1.0, 0.001), 1.0) == delta_of_rho(0.1, 1.0)


def recomputed(parts: Iterable[PrivacyEvent], delta: float) -> float:
    """The epsilon of the exported event, by the library's Renyi accountant with our orders."""
    event, epsilon, apart = event_of(parts)
    accountant = RdpAccountant(ORDERS, NeighboringRelation.REPLACE_ONE).compose(event)
    return epsilon + float(accountant.get_epsilon(delta - apart))


ROUND: tuple[PrivacyEvent, ...] = (
    ZcdpEvent("game", Fraction(1, 100)),
    PureDpEvent("detection", Fraction(1, 20), 30),
    ZcdpEvent("answers", Fraction(1, 1000), 30),
    ApproximateDpEvent("samplers", Fraction(0), Fraction(1, 10**12)),
)


def test_exported_events_cost_what_was_charged() -> None:
    charged = epsilon_for(charge_of(ROUND), 1e-9)
    assert recomputed(ROUND, 1e-9) == pytest.approx(charged, rel=1e-9)
    # By the library's own orders, as somebody else would do it.
    event, epsilon, delta = event_of(ROUND)
    accountant = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE).compose(event)
    assert (epsilon, delta) == (0.0, math.nextafter(1e-12, 1))
    assert charged <= accountant.get_epsilon(1e-9 - delta) * (1 + 1e-9) <= charged * 1.05
    # What no proof covers for the discrete laws is refused, not answered.
    assert not PLDAccountant(NeighboringRelation.REPLACE_ONE).supports(event)


def test_loss_distributions_find_less_than_is_charged() -> None:
    # An epsilon-DP mechanism loses no more than a discrete Laplace one of rate epsilon that moves by one, whose
    # losses are epsilon and -epsilon only; the Gaussian of a marginal moves by the root of 2.
    special = NeighboringRelation.REPLACE_SPECIAL
    pure: list[PrivacyEvent] = [PureDpEvent("detection", Fraction(1, 20), 30)]
    losses = PLDAccountant(special).compose(DiscreteLaplaceDpEvent(1 / 20, 1), 30)
    charged = epsilon_for(charge_of(pure), 1e-9)
    assert 0.8 * charged < losses.get_epsilon(1e-9) <= charged
    answers: list[PrivacyEvent] = [ZcdpEvent("answers", gaussian_rho(Fraction(2), Fraction(500), 30))]
    losses = PLDAccountant(special).compose(GaussianDpEvent(math.sqrt(500 / 2)), 30)
    charged = epsilon_for(charge_of(answers), 1e-9)
    assert 0.8 * charged < losses.get_epsilon(1e-9) <= charged
    # With the norm of a column in place of the root of 2, the charge would not cover them.
    column: list[PrivacyEvent] = [ZcdpEvent("answers", gaussian_rho(Fraction(1), Fraction(500), 30))]
    assert losses.get_epsilon(1e-9) > epsilon_for(charge_of(column), 1e-9)


def test_a_pair_is_added_beside_the_events() -> None:
    pair: list[PrivacyEvent] = [
        ApproximateDpEvent("game", Fraction(1, 2), Fraction(1, 10**7)),
        ZcdpEvent("more", Fraction(1, 100)),
    ]
    assert recomputed(pair, 1e-6) == pytest.approx(0.5 + epsilon_of_rho(0.01, 9e-7))
    assert event_of([PureDpEvent("detection", Fraction(1), 0)]) == (ComposedDpEvent([]), 0.0, 0.0)


@pytest.mark.parametrize("rho", [1e-4, 1e-2, 0.3])
def test_a_curve_of_few_orders_converts_nearly_as_well(rho: float) -> None:
    exact = epsilon_of_rho(rho, 1e-9)
    assert exact * (1 - 1e-4) <= epsilon_of_curve(zcdp_curve(rho), 1e-9) <= exact * 1.02
    assert epsilon_of_curve(zcdp_curve(rho), 0.0) == math.inf
    assert epsilon_of_curve(RenyiCurve(), 1e-9) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("mixture", [BinomialMixture(1000, 0.01, 1e-4), BinomialMixture(40, 0.1, 0.002)])
def test_curves_of_rounds_compose_better_than_pairs(mixture: BinomialMixture) -> None:
    curve, rounds = mixture_curve(mixture), 8
    together = curve
    for _ in range(rounds - 1):
        together = together + curve
    # The pair at a delta of its own is the sharper bound for one round, the curve for many.
    assert mixture_delta(mixture, epsilon_of_curve(curve, 1e-6)) < 1e-6
    assert mixture_delta(mixture, epsilon_of_curve(together, 1e-6) / rounds) > 1e-6 / rounds
