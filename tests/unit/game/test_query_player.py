"""The query player: the capped projection, weights, and the mixed action."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise_server.game.query_player import (
    FLOOR,
    Units,
    action_weights,
    mixed_action,
    project,
    unit_weights,
    weigh,
)

ONE = 1 << 48  # an exponent of 1


def test_projection_with_ties_and_density_near_both_ends() -> None:
    assert project(np.ones(5), 4.999) == pytest.approx(np.full(5, 0.2), rel=1e-12)
    assert project(np.ones(5), 1.0) == pytest.approx(np.full(5, 0.2), rel=1e-12)
    assert project(np.array([1.0, 1.0, 1e-300]), 2.0) == pytest.approx([0.5, 0.5, 1e-300 / 2], rel=1e-9)


def test_density_one_is_plain_multiplicative_weights() -> None:
    weights = np.array([3.0, 1.0, 4.0])
    assert project(weights, 1.0) == pytest.approx(weights / 8, rel=1e-14)


def test_unit_weights_are_means_over_queries_and_complements() -> None:
    units = Units(np.array([0, 1, 3]), padding=2)
    weights = weigh(np.array([ONE, 0, -2 * ONE]), units)
    assert weights.units == pytest.approx([math.cosh(1), (2 + 2 * math.cosh(2)) / 4, 1, 1], rel=1e-12)


def test_mixed_action_is_signed_towards_undercounted_queries() -> None:
    action = mixed_action(np.array([ONE, -ONE, 0]), Units(np.arange(4), padding=0), 1.0)
    assert action[0] > 0
    assert action[1] == -action[0]
    assert action[2] == 0


def test_mixed_action_of_a_marginal_is_capped_as_one_unit() -> None:
    units = Units(np.array([0, 4, 5, 6]), padding=0)
    action = mixed_action(np.array([50, -50, 50, -50, 0, 0]) * ONE, units, 2.0)
    assert abs(action[:4]).sum() <= 2**44 / 2 + 4
    assert abs(action[:4]).sum() >= 2**44 / 2 - 4


def test_integer_weights_keep_the_ratios() -> None:
    units = Units(np.arange(7), padding=3)
    exponents = np.array([9, -9, 3, 0, 1, 40]) * ONE
    weights = weigh(exponents, units)
    drawn = unit_weights(weights, 3.0)
    masses = project(weights.units, 3.0)
    for weight, mass in zip(drawn.tolist(), masses.tolist(), strict=True):
        assert abs(weight - (mass * 2.0**60 + FLOOR)) <= 1
    inside = action_weights(weights, units, np.array([0]))
    ratio = (inside[0] - FLOOR) / (inside[1] - FLOOR)
    assert ratio == pytest.approx(math.exp(18), rel=1e-9)
