"""Calibrates the least noise for one vector of counts that may use the whole data budget, and its charge."""

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
    """Calibrate discrete Laplace noise to a budget.

    The noise is charged either as pure epsilon or as `epsilon^2 / 2` in zCDP, whichever allows less noise. Both
    charges are proven (`accounting.laplace_rho`), and accounts count both at their order. Unless delta is large,
    the pure epsilon allows far less noise.

    Returns:
        The noise of a count with sensitivity 1, and the privacy event that is charged.

    Raises:
        BudgetExhausted: the budget is too small for any noise that can be drawn.
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
    """Calibrate discrete Gaussian noise to a budget, charged in zCDP (`accounting.gaussian_rho`).

    Returns and raises as `calibrate_laplace` does.
    """
    rho = Fraction(usable_rho(budget), RHO_UNIT)
    if epsilon_within(rho) < MIN_EPSILON:
        raise BudgetExhausted("data_budget: is too small for any noise that can be drawn; raise it")
    noise = GaussianNoise.within(rho)
    return noise, noise.part(1)


def noise_distribution(noise: AnswerNoise, l1_sensitivity: int) -> NoiseDistribution:
    """Return the noise of each count of a vector with this L1 sensitivity. Raises `BudgetExhausted`."""
    try:
        return noise.law(l1_sensitivity)
    except ValueError:
        raise BudgetExhausted(
            "data_budget: is too small for so many statements; the noise would be coarser than its sampler can draw"
        ) from None
