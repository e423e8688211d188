"""Discrete noise against its law, with a stated chance of a false alarm and proven power.

The seeds are fixed, so a test that passes once always passes. Over random seeds, all comparisons together raise a
false alarm with probability at most 10^-6, divided evenly over them; wrong laws must be rejected at the same level.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from statistical.binomial_bins import deviates

from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

FALSE_ALARM = 1e-6
COMPARISONS = 10  # five rates, the mutants' own, two lags of two statistics
DRAWS = 40_000
BINS = 24
RATES = [Fraction(3, 2), Fraction(1, 4), Fraction(1, 1000), Fraction(1, 10**8), Fraction(1, 10**12)]


def cumulative(rate: float, z: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(Z <= z), by its closed form in floating point: no code shared with the sampler."""
    p = np.exp(-rate)
    upper = 1 - np.exp(-rate * (np.maximum(z, 0) + 1)) / (1 + p)
    lower = np.exp(rate * np.minimum(z, 0)) / (1 + p)
    chosen: NDArray[np.float64] = np.where(z >= 0, upper, lower)
    return chosen


def is_rejected(drawn: NDArray[np.int64], rate: float) -> bool:
    """Whether the draws deviate from the law of `rate`, over bins between its quantiles."""
    halves = np.log(np.arange(1, BINS // 2) * 2 / BINS) / rate
    # At large rates many quantiles round to the same integer, and the bins are fewer.
    edges = np.unique(np.round(np.concatenate([halves, [0.0], -halves])))
    law = np.diff(np.concatenate([[0.0], cumulative(rate, edges), [1.0]]))
    counts = np.bincount(np.searchsorted(edges, drawn.astype(np.float64), side="left"), minlength=len(law))
    return deviates(counts, law, FALSE_ALARM / COMPARISONS)


@pytest.mark.parametrize("rate", RATES)
def test_draws_follow_the_law(rate: Fraction) -> None:
    drawn = DiscreteLaplace(rate).draw(DRAWS, KeyedStream.derive(b"\x05" * 32, "law", str(rate)))
    assert not is_rejected(drawn, float(rate))


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("factor", [Fraction(9, 10), Fraction(10, 9)])
def test_a_wrong_scale_is_rejected(rate: Fraction, factor: Fraction) -> None:
    drawn = DiscreteLaplace(rate * factor).draw(DRAWS, KeyedStream.derive(b"\x05" * 32, "wrong scale", str(rate)))
    assert is_rejected(drawn, float(rate))


def test_a_forgotten_digit_and_a_one_sided_law_are_rejected() -> None:
    rate = Fraction(1, 1000)
    noise = DiscreteLaplace(rate)
    drawn = noise.draw(DRAWS, KeyedStream.derive(b"\x05" * 32, "mutants"))
    assert not is_rejected(drawn, float(rate))
    assert is_rejected(np.sign(drawn) * (np.abs(drawn) & ~(1 << 9)), float(rate))
    assert is_rejected(np.abs(drawn), float(rate))


@pytest.mark.parametrize("lag", [1, 2])
def test_successive_draws_are_uncorrelated(lag: int) -> None:
    # Hoeffding's bound: the products below lie in [-1, 1], have mean 0 under independence, and are themselves
    # independent, since no draw is in two of the pairs.
    rate = Fraction(1, 10**6)
    drawn = DiscreteLaplace(rate).draw(DRAWS, KeyedStream.derive(b"\x05" * 32, "independence"))
    signs = np.sign(drawn).astype(np.int64)
    sizes = np.where(np.abs(drawn) > np.log(2) / float(rate), 1, -1)
    pairs = np.arange(0, DRAWS - lag, 2 * lag)
    threshold = np.sqrt(2 * np.log(2 / (FALSE_ALARM / COMPARISONS)) / len(pairs))
    assert abs(float((signs[pairs] * signs[pairs + lag]).mean())) <= threshold
    # The median of |Z| is that of the continuous law up to a millionth, hence the small allowance.
    assert abs(float((sizes[pairs] * sizes[pairs + lag]).mean())) <= threshold + 1e-5
