"""Conversion to (epsilon, delta): agreement with the exact Gaussian mechanism, inverses, and the mixture."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from equipoise.accounting import RHO_UNIT, BinomialMixture, Cost
from equipoise_server.ledger.conversion import (
    delta_of_rho,
    epsilon_for,
    epsilon_of_rho,
    largest_rho,
    mixture_delta,
    mixture_epsilon,
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


def test_mixture_epsilon_meets_delta() -> None:
    mixture = BinomialMixture(1000, 0.01, 1e-4)
    epsilon = mixture_epsilon(mixture, 1e-6)
    assert mixture_delta(mixture, epsilon) <= 1e-6 < mixture_delta(mixture, epsilon * 0.99)
    assert mixture_epsilon(mixture, 0.0) == math.inf
