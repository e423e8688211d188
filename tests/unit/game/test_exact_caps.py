"""The capped projection in exact fractions: no mass above the cap, and none below what its weight is due."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from equipoise_server.game.projection import cap_scale
from equipoise_server.game.query_player import WEIGHT_BITS, project


@pytest.mark.parametrize("density", [150.0, 300.0, 1000.7])
def test_a_capped_unit_has_no_more_than_the_cap_to_the_last_bit(density: float) -> None:
    weights = np.concatenate([np.full(100, 1e9), np.linspace(1, 2, 1500)])
    masses = project(weights, density)
    assert Fraction(float(masses.max())) <= 1 / Fraction(density)
    assert (masses == masses.max()).sum() >= 100


@pytest.mark.parametrize("density", [3.0, 300.0])
def test_rounding_leaves_no_unit_less_than_its_part_of_what_a_capped_one_has(density: float) -> None:
    """Else all parts together might be too few for the cap on each of them."""
    weights = np.concatenate([[1e9, 1e9], np.exp(np.linspace(-3, 0, 1500))])
    masses, scale = project(weights, density), cap_scale(weights, density)
    capped = Fraction(float(masses.max()))
    assert (capped * 2**WEIGHT_BITS).denominator == 1
    for weight, mass in zip(weights.tolist(), masses.tolist(), strict=True):
        assert Fraction(mass) >= min(Fraction(1), scale * Fraction(weight)) * capped
