"""What rounding can do to a privacy loss is charged: against worst cases in fractions, and Jensen's inequality."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from equipoise import accounting
from equipoise.accounting import ORDERS, BinomialMixture, Cost, RenyiCurve, ThresholdTests
from equipoise.accounting.cost import DELTA_UNIT, RHO_UNIT

DRAW = Fraction(1, 2**30)  # the documented relative error of an integer weight, without that of the doubles


def rounded(amount: Fraction, bits: int) -> Fraction:
    """The nearest multiple of `2^-bits`, ties to even."""
    return Fraction(round(amount * 2**bits), 2**bits)


def test_both_runs_coefficients_may_be_rounded_away_from_each_other() -> None:
    """One record counts for all queries and another for none: the range moves by what all coefficients do."""
    queries = 10_000
    unit = Fraction(1, 2**accounting.COEFFICIENT_BITS)
    ours, theirs = unit * 3 / 2, unit / 2
    moved = rounded(ours, accounting.COEFFICIENT_BITS) - rounded(theirs, accounting.COEFFICIENT_BITS)
    assert queries * (moved - (ours - theirs)) == queries * unit
    assert Fraction(accounting.rounding_slack(1, queries)) >= queries * unit


@pytest.mark.parametrize("units", [10**6, 10**9])
def test_both_runs_doubles_may_err_away_from_each_other(units: int) -> None:
    """Two runs, each with a relative error of `units` half-units in the last place of a double, and more."""
    assert Fraction(accounting.rounding_slack(units, 0)) > 2 * units * Fraction(1, 2**51)


def test_the_potential_is_rounded_down_in_both_runs() -> None:
    """In one run a record loses nearly a unit by that, in the other one another record does."""
    unit, nearly = Fraction(1, 2**accounting.POTENTIAL_BITS), Fraction(999, 1000)
    ours, theirs = (unit * nearly, Fraction(0)), (Fraction(0), unit * nearly)

    def down(amount: Fraction) -> Fraction:
        return amount // unit * unit

    before = [one - other for one, other in zip(ours, theirs, strict=True)]
    after = [down(one) - down(other) for one, other in zip(ours, theirs, strict=True)]
    shifts = [one - other for one, other in zip(after, before, strict=True)]
    moved = max(shifts) - min(shifts)
    assert moved == 2 * nearly * unit
    rounds, batch = 5, 3
    least = (rounds - 1) * batch * moved**2 / 8
    assert Fraction(accounting.mixed_play_data_rho(rounds, batch, 1.0, 0.0, 10, 0.0)) >= least
    analysts = accounting.mixed_play_analyst_rho(rounds, batch, 1.0, math.inf, 0.0)
    assert Fraction(analysts) >= least


def test_an_action_s_two_draws_are_charged_for_their_integer_weights() -> None:
    """Nothing else differs at rate 0: each draw's exponents have a range of `2 g` in either run."""
    rounds, draws = 4, 7
    least = draws * (rounds - 1) * 2 * (4 * DRAW) ** 2 / 8
    assert Fraction(accounting.sampled_play_data_rho(rounds, draws, 0.0, 100, 1)) >= least


@pytest.mark.parametrize("density", [2.0, 8.0, 64.0])
def test_integer_weights_may_make_a_draw_differ(density: float) -> None:
    """An action is two draws, and the weights of each are within `e^(+-g)` in either run."""
    mixture = accounting.sampled_play_analyst_mixture(3, 2, 5, 0.1, density, 1)
    assert Fraction(mixture.probability) >= 1 / Fraction(density) + 2 * DRAW


@pytest.mark.parametrize("trials", [50, 400, 3000, 30_000])
@pytest.mark.parametrize("chance", [0.5, 0.01, 0.3])
@pytest.mark.parametrize("rho", [2.0**-80, 2.0**-70, 2.0**-60])
def test_a_mixture_costs_no_less_than_its_mean_however_little_that_is(
    trials: int, chance: float, rho: float
) -> None:
    """By Jensen's inequality, in fractions, where the logarithms of factorials err by far more than all of it."""
    exact = Fraction(chance)
    mean_square = trials * exact * (1 - exact) + (trials * exact) ** 2
    divergences = accounting.mixture_curve(BinomialMixture(trials, chance, rho)).divergences
    for order, divergence in zip(ORDERS, divergences, strict=True):
        assert Fraction(divergence) >= Fraction(order) * mean_square * Fraction(rho)


def test_a_sum_of_curves_is_never_rounded_below_it() -> None:
    large, small = RenyiCurve((1.0,) * len(ORDERS)), RenyiCurve((2.0**-54,) * len(ORDERS))
    assert 1.0 + 2.0**-54 == 1.0
    for curve in (large + small, small + large):
        assert all(Fraction(value) >= 1 + Fraction(1, 2**54) for value in curve.divergences)


def test_tests_that_are_counted_by_their_pair_cost_its_delta_too() -> None:
    """Ten thousand positive tests diverge by more than their pair, which may fail with probability delta."""
    order, epsilon, delta = 5, Fraction(1, 10), Fraction(3, 10**7)
    tests = ThresholdTests("tests", 10_000, Fraction(1, 4), Fraction(0), epsilon, delta)
    counted = min(epsilon, order * epsilon**2 / 2)
    assert accounting.threshold_tests_divergence(0.25, 10_000, 0.0, order) > counted
    charged = accounting.charge_at([tests], order)
    assert charged == Cost(divergence=int(counted * RHO_UNIT), delta=int(delta * DELTA_UNIT))


@pytest.mark.parametrize("epsilon", [2.0**-power for power in range(2, 44, 3)])
def test_threshold_tests_cost_no_less_than_their_theorem_to_sixty_digits(epsilon: float) -> None:
    """The smaller the epsilon, the more of the logarithms cancels: all but its square."""
    for order in ORDERS[:60:3]:
        charged = accounting.threshold_tests_divergence(epsilon, 1, 0.0, order)
        if charged < math.inf:
            assert Fraction(charged) >= Fraction(theorem_of_threshold_tests(Decimal(epsilon), Decimal(order)))


def theorem_of_threshold_tests(epsilon: Decimal, order: Decimal) -> Decimal:
    """`kappa / (a - 1)` of one positive test without an answer."""
    with localcontext() as context:
        context.prec = 60
        below = (order - 1) * epsilon
        first = order * epsilon - (1 + epsilon.exp() - (-below).exp()).ln()
        second = -below - (1 + epsilon.exp() - (order * epsilon).exp()).ln()
        return max(first, second) / (order - 1)
