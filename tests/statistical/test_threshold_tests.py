"""Tests against a public threshold: the theorem by hill climbing, by summing over every outcome, and its charge."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import optimize, special

from equipoise import accounting
from equipoise.accounting import (
    DELTA_UNIT,
    ORDERS,
    RHO_UNIT,
    PrivacyEvent,
    ThresholdTests,
    charge_at,
    charge_of,
    events_from_json,
    events_to_json,
    threshold_tests_curve,
    threshold_tests_divergence,
)
from equipoise.auditing.charge_parts import is_cost_of
from equipoise_server.conversion import epsilon_of_curve, event_of

CASES = ((0.3, 1.5), (0.3, 2.6), (0.05, 8.0), (1.0, 1.1), (0.01, 60.0))  # epsilon of a test, order


def renyi_terms(p: float, q: float, order: float) -> tuple[float, float]:
    """What a positive and a negative test add to the sum of P^a Q^(1-a)."""
    positive = p**order * q ** (1 - order) if p else 0.0
    return positive, (1 - p) ** order * (1 - q) ** (1 - order) if p < 1 else 0.0


def close_pairs(epsilon: float) -> list[tuple[float, float]]:
    """Chances of being positive under two neighbours that are as far apart as `epsilon` allows, and some nearer."""
    found = []
    for p in np.concatenate([np.linspace(0, 1, 60), [1 / (1 + math.exp(epsilon)), 1 / (1 + math.exp(-epsilon))]]):
        least = max(p * math.exp(-epsilon), 1 - (1 - p) * math.exp(epsilon))
        most = min(p * math.exp(epsilon), 1 - (1 - p) * math.exp(-epsilon))
        found += [(float(p), float(q)) for q in (least, most, (least + 3 * most) / 4)]
    return found


@cache
def largest_moment(epsilon: float, order: float, positives: int, tests: int) -> float:
    """The largest sum of P^a Q^(1-a) over all outcomes, where every test is chosen after seeing those before it."""
    if not positives or not tests:
        return 1.0
    less = largest_moment(epsilon, order, positives - 1, tests - 1)
    same = largest_moment(epsilon, order, positives, tests - 1)
    terms = (renyi_terms(p, q, order) for p, q in close_pairs(epsilon))
    return max(above * less + below * same for above, below in terms)


@pytest.mark.parametrize(("epsilon", "order"), CASES)
def test_no_pair_of_chances_beats_the_theorem(epsilon: float, order: float) -> None:
    """Hill climbing over the polygon, from many starts; the bound is met at a corner."""
    log_ratio = (order - 1) * threshold_tests_divergence(epsilon, 1, 0.0, order)

    def beaten(point: np.ndarray) -> float:
        p = float(special.expit(min(max(point[0], -10), 10)))
        least = max(p * math.exp(-epsilon), 1 - (1 - p) * math.exp(epsilon))
        most = min(p * math.exp(epsilon), 1 - (1 - p) * math.exp(-epsilon))
        q = least + (most - least) * float(special.expit(point[1]))
        positive, negative = renyi_terms(p, q, order)
        return 1 - negative - positive * math.exp(-log_ratio)

    starts = [(first, second) for first in (-3.0, 0.0, 3.0) for second in (-4.0, 4.0)]
    least = min(optimize.minimize(beaten, start, method="Nelder-Mead").fun for start in starts)
    assert -1e-9 <= least <= 1e-6
    cheaper = log_ratio * 0.95
    corners = [(p, q) for p, q in close_pairs(epsilon)]
    terms = [renyi_terms(p, q, order) for p, q in corners]
    assert max(negative + positive * math.exp(-cheaper) for positive, negative in terms) > 1


@pytest.mark.thin(2)
@pytest.mark.parametrize(("epsilon", "order"), CASES)
@pytest.mark.parametrize("positives", [1, 2])
def test_every_sequence_of_tests_keeps_to_its_charge(epsilon: float, order: float, positives: int) -> None:
    most = threshold_tests_divergence(epsilon, positives, 0.0, order)
    found = math.log(largest_moment(epsilon, order, positives, 400)) / (order - 1)
    assert 0.75 * most <= found <= most
    # It is the negative tests that make it more than so many tests' own cost.
    alone = math.log(largest_moment(epsilon, order, positives, positives)) / (order - 1)
    assert found > 1.3 * alone


def test_small_tests_cost_their_square_and_large_orders_know_nothing() -> None:
    for epsilon in (1e-8, 1e-5, 1e-3):
        for order in (1 + 2.0**-6, 2.0, 20.0):
            cost = threshold_tests_divergence(epsilon, 10, epsilon**2, order)
            assert cost == pytest.approx(20 * order * epsilon**2, rel=1.1 * order * epsilon + 2e-6)
            assert cost > 20 * order * epsilon**2
    assert threshold_tests_divergence(0.5, 0, 1.0, 3.0) == 0
    edge = math.log1p(math.exp(0.3)) / 0.3
    assert threshold_tests_divergence(0.3, 1, 0.0, edge * (1 - 1e-6)) < math.inf
    assert threshold_tests_divergence(0.3, 1, 0.0, edge * (1 + 1e-6)) == math.inf
    assert threshold_tests_divergence(700.0, 1, 0.0, 1e5) == math.inf
    curve = threshold_tests_curve(0.3, 2, 0.01).divergences
    assert list(curve) == sorted(curve)
    assert [most < math.inf for most in curve] == [order < edge for order in ORDERS]


def part(delta: float = 1e-7) -> ThresholdTests:
    curve = threshold_tests_curve(0.02, 20, 0.0002)
    epsilon = Fraction(math.ceil(epsilon_of_curve(curve, delta) * RHO_UNIT), RHO_UNIT)
    made = (Fraction(0.02), Fraction(0.0002))
    return ThresholdTests("tests and answers", 20, *made, epsilon, Fraction(delta))


def test_a_part_counts_its_pair_or_its_divergence() -> None:
    made = part()
    assert events_from_json(events_to_json("online_private", [made])) == (made,)
    cost = charge_of([made])
    assert cost.rho == 0
    assert Fraction(cost.epsilon, RHO_UNIT) == made.epsilon
    assert cost.delta == math.ceil(made.delta * DELTA_UNIT)
    assert event_of([made])[1:] == pytest.approx((float(made.epsilon), 1e-7))
    at = charge_at([made], 8.0)
    assert at.divergence == math.ceil(Fraction(threshold_tests_divergence(0.02, 20, 0.0002, 8.0)) * RHO_UNIT)
    assert at.delta == 0
    # Beyond the orders at which the divergence is known, the pair counts.
    assert charge_at([made], 100.0) == charge_at(
        [accounting.ApproximateDpEvent("", made.epsilon, made.delta)], 100.0
    )


@pytest.mark.parametrize("order", [None, 8.0])
def test_an_auditor_refuses_a_pair_that_does_not_follow(order: float | None) -> None:
    made = part()

    def counted(parts: list[PrivacyEvent]) -> bool:
        cost = charge_of(parts) if order is None else charge_at(parts, order)
        return is_cost_of(tuple(parts), cost, order)

    assert counted([made])
    assert not counted([replace(made, epsilon=made.epsilon * Fraction(99, 100))])
    assert not counted([replace(made, delta=made.delta / 2)])
    assert not counted([replace(made, positives=made.positives + 1)])
    assert not is_cost_of((replace(made, test_epsilon=Fraction(10**400)),), charge_of([made]), order)
