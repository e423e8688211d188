"""The least noise for one vector of counts that may have the whole data budget, and the charge for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from equipoise.accounting import RHO_UNIT, Approximate, Part, Pure
from equipoise.errors import BudgetExhausted
from equipoise_server.mechanisms.answer_noise import AnswerNoise, GaussianNoise, LaplaceNoise, Law
from equipoise_server.mechanisms.budgets import SMALLEST_EPSILON, epsilon_within, usable_rho
from equipoise_server.mechanisms.interface import Budget

Paid = tuple[AnswerNoise, Part]
Calibration = Callable[[Budget], Paid]


def least_laplace(budget: Budget) -> Paid:
    """Discrete Laplace noise, charged as what buys less of it: its pure epsilon, or `epsilon^2 / 2` in zCDP.

    Either charge is proven (`accounting.laplace_rho`), and accounts count either at their order. Unless delta is
    large, the budget's whole epsilon buys far less noise than its rho.
    """
    plain = Fraction(math.floor(Fraction(budget.epsilon) * RHO_UNIT), RHO_UNIT)
    concentrated = epsilon_within(Fraction(usable_rho(budget), RHO_UNIT))
    epsilon = max(plain, concentrated)
    if epsilon < SMALLEST_EPSILON:
        raise BudgetExhausted("data_budget: too little for any noise; allow more")
    if plain >= concentrated:
        return LaplaceNoise(plain), Approximate("answers", plain, Fraction(0))
    return LaplaceNoise(concentrated), Pure("answers", concentrated)


def least_gaussian(budget: Budget) -> Paid:
    """Discrete Gaussian noise, charged in zCDP (`accounting.gaussian_rho`)."""
    rho = Fraction(usable_rho(budget), RHO_UNIT)
    if epsilon_within(rho) < SMALLEST_EPSILON:
        raise BudgetExhausted("data_budget: too little for any noise; allow more")
    noise = GaussianNoise.within(rho)
    return noise, noise.part(1)


def law_of(noise: AnswerNoise, moved: int) -> Law:
    """The noise of each of the counts, all of which move by `moved` in sum. Raises `BudgetExhausted`."""
    try:
        return noise.law(moved)
    except ValueError:
        raise BudgetExhausted(
            "data_budget: too little for so many statements; noise would be coarser than what its sampler draws"
        ) from None
