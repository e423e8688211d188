"""The least noise for one vector of counts that may have the whole data budget, and the charge for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from equipoise.accounting import RHO_UNIT, ApproximateDpEvent, PrivacyEvent, PureDpEvent
from equipoise.errors import BudgetExhausted
from equipoise.model.accounts import Budget
from equipoise_server.mechanisms.budget_rounding import MIN_EPSILON, epsilon_within, usable_rho
from equipoise_server.mechanisms.noise_calibration import (
    AnswerNoise,
    GaussianNoise,
    LaplaceNoise,
    NoiseDistribution,
)

CalibratedNoise = tuple[AnswerNoise, PrivacyEvent]
Calibration = Callable[[Budget], CalibratedNoise]


def calibrate_laplace(budget: Budget) -> CalibratedNoise:
    """Discrete Laplace noise, charged as what buys less of it: its pure epsilon, or `epsilon^2 / 2` in zCDP.

    Either charge is proven (`accounting.laplace_rho`), and accounts count either at their order. Unless delta is
    large, the budget's whole epsilon buys far less noise than its rho.
    """
    plain = Fraction(math.floor(Fraction(budget.epsilon) * RHO_UNIT), RHO_UNIT)
    concentrated = epsilon_within(Fraction(usable_rho(budget), RHO_UNIT))
    epsilon = max(plain, concentrated)
    if epsilon < MIN_EPSILON:
        raise BudgetExhausted("data_budget: is too small for any noise that can be drawn; raise it")
    if plain >= concentrated:
        return LaplaceNoise(plain), ApproximateDpEvent("answers", plain, Fraction(0))
    return LaplaceNoise(concentrated), PureDpEvent("answers", concentrated)


def least_gaussian(budget: Budget) -> CalibratedNoise:
    """Discrete Gaussian noise, charged in zCDP (`accounting.gaussian_rho`)."""
    rho = Fraction(usable_rho(budget), RHO_UNIT)
    if epsilon_within(rho) < MIN_EPSILON:
        raise BudgetExhausted("data_budget: is too small for any noise that can be drawn; raise it")
    noise = GaussianNoise.within(rho)
    return noise, noise.part(1)


def noise_distribution(noise: AnswerNoise, l1_sensitivity: int) -> NoiseDistribution:
    """The noise of each of the counts, all of which move by `l1_sensitivity` in sum. Raises `BudgetExhausted`."""
    try:
        return noise.law(l1_sensitivity)
    except ValueError:
        raise BudgetExhausted(
            "data_budget: is too small for so many statements; the noise would be coarser than its sampler can draw"
        ) from None
