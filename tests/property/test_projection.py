"""The capped projection against exact fractions: the scale, the masses, and what is drawn from them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from equipoise_server.game.projection import cap_scale
from equipoise_server.game.query_player import WEIGHT_BITS, Units, Weights, project, unit_weights, weigh

few = st.sampled_from((1e-150, 0.5, 1.0, math.nextafter(1.0, 2.0), 3.0, 1e16, 1e150))
anywhere = st.floats(-345.0, 345.0).map(math.exp)
near_one = st.floats(1.0, 4.0)
weight_lists = st.one_of(
    *(st.lists(each, min_size=2, max_size=14) for each in (few, anywhere, near_one, few | anywhere))
)


@st.composite
def instances(draw: st.DrawFn) -> tuple[NDArray[np.float64], float]:
    """Weights, many of them ties, and a density: 1, a hair below the number of units, whole, or in between."""
    weights = draw(weight_lists)
    most = math.nextafter(float(len(weights)), 0)
    density = draw(
        st.sampled_from((1.0, math.nextafter(1.0, 2.0), most, most - 1e-12, float(len(weights) - 1)))
        | st.floats(1.0, most)
    )
    return np.array(weights), density


def reference(weights: NDArray[np.float64], density: float) -> Fraction:
    """The scale in exact fractions, by trying every number of capped units, the heaviest first."""
    descending = sorted((Fraction(weight) for weight in weights.tolist()), reverse=True)
    for capped in range(math.ceil(density)):
        scale = (Fraction(density) - capped) / sum(descending[capped:])
        if scale * descending[capped] <= 1:
            return scale
    raise AssertionError("no projection")


@given(instances())
def test_the_scale_is_exact(instance: tuple[NDArray[np.float64], float]) -> None:
    weights, density = instance
    assert cap_scale(weights, density) == reference(weights, density)


@given(instances())
def test_masses_keep_the_cap_and_are_as_near_as_they_say(instance: tuple[NDArray[np.float64], float]) -> None:
    weights, density = instance
    scale = reference(weights, density)
    masses = project(weights, density)
    full = Fraction(1) / Fraction(density)
    for weight, mass in zip(weights.tolist(), masses.tolist(), strict=True):
        assert Fraction(mass) <= full
        ideal = min(Fraction(1), scale * Fraction(weight)) * full
        assert ideal * (1 - Fraction(1, 2**48)) <= Fraction(mass) <= ideal * (1 + Fraction(1, 2**48))


@given(instances())
def test_no_unit_is_drawn_more_often_than_its_cap_allows(instance: tuple[NDArray[np.float64], float]) -> None:
    weights, density = instance
    drawn = unit_weights(Weights(weights, 1 / weights, weights), density).tolist()
    assert max(drawn) * Fraction(density) <= sum(drawn) < 2**62
    scale, most = reference(weights, density), Fraction(2**WEIGHT_BITS) / Fraction(density)
    for weight, integer in zip(weights.tolist(), drawn, strict=True):
        ideal = min(Fraction(1), scale * Fraction(weight)) * most
        assert abs(integer - 2**31 - ideal) <= 1 + ideal / 2**48


@given(instances(), st.integers(0, 1000))
def test_the_order_of_units_does_not_matter(instance: tuple[NDArray[np.float64], float], seed: int) -> None:
    weights, density = instance
    order = np.random.default_rng(seed).permutation(len(weights))
    np.testing.assert_array_equal(project(weights[order], density), project(weights, density)[order])


@pytest.mark.nightly
def test_many_units_over_300_orders_of_magnitude() -> None:
    """More than one block, more than one capped power of two; the reference sums sorted integers."""
    choose = np.random.default_rng(5)
    weights = np.exp(choose.uniform(-345, 345, 40_000))
    weights[::7] = weights[0]
    for density in (1.0, 17.25, 9_999.5, 39_999.999):
        exact = sorted((Fraction(weight) for weight in weights.tolist()), reverse=True)
        scale = cap_scale(weights, density)
        capped = int(np.count_nonzero(weights >= float(1 / scale)))
        assert scale * sum(exact[capped:]) + capped == Fraction(density)
        assert not capped or scale * exact[capped - 1] >= 1
        assert scale * exact[capped] <= 1


def test_rounding_many_small_weights_keeps_the_cap() -> None:
    """Nearly every unit is capped, so there is no room but what rounding leaves."""
    weights = np.exp(np.random.default_rng(6).normal(0, 3, 5000))
    density = math.nextafter(5000.0, 0)
    drawn = unit_weights(Weights(weights, 1 / weights, weights), density).tolist()
    assert max(drawn) * Fraction(density) <= sum(drawn)


@pytest.mark.parametrize("density", [0.5, 3.0, 4.0, math.nan, math.inf])
def test_densities_out_of_range_are_refused(density: float) -> None:
    with pytest.raises(ValueError, match="density"):
        project(np.ones(3), density)


@given(
    st.lists(st.lists(st.integers(-(300 << 48), 300 << 48), min_size=1, max_size=6), min_size=1, max_size=6),
    st.integers(0, 2),
)
def test_unit_weights_are_means_of_exponentials(exponents: list[list[int]], padding: int) -> None:
    """The mean of `cosh` over a unit's queries."""
    offsets = np.cumsum([0, *(len(unit) for unit in exponents)])
    weights = weigh(np.array([each for unit in exponents for each in unit]), Units(offsets, padding))
    assert weights.units[len(exponents) :].tolist() == [1.0] * padding
    for unit, (start, stop) in enumerate(itertools.pairwise(offsets.tolist())):
        both = [*weights.positive[start:stop].tolist(), *weights.negative[start:stop].tolist()]
        mean = sum(map(Fraction, both), Fraction(0)) / len(both)
        assert abs(Fraction(float(weights.units[unit])) - mean) <= mean / 2**50
        ideal = math.fsum(math.cosh(each / 2**48) for each in exponents[unit]) / len(exponents[unit])
        assert weights.units[unit] == pytest.approx(ideal, rel=1e-13)
