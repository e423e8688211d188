"""Discrete Gaussian noise against its law, with a stated chance of a false alarm and proven power.

The seeds are fixed, so a test that passes once always passes. Over random seeds, all comparisons together raise a
false alarm with probability at most 10^-6, divided evenly over them; wrong laws must be rejected at the same level.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import chi2
from statistical.binomial_bins import deviates

from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.stream import KeyedStream

FALSE_ALARM = 1e-6
VARIANCES = [Fraction(1, 100), Fraction(1, 3), Fraction(2), Fraction(10**6), Fraction(10**14)]
COMPARISONS = 4 * len(VARIANCES) + 3  # bins, moments and two tails of each; the mutants' own; two lags
LEVEL = FALSE_ALARM / COMPARISONS
DRAWS = 40_000
BINS = 24


def cumulative(variance: float, z: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(Z <= z): summed in floating point, or from 10^10 on the normal law at z + 1/2, then right to 10^-12."""
    if variance >= 1e10:
        return np.asarray(ndtr((z + 0.5) / math.sqrt(variance)))
    reach = 12 + math.ceil(12 * math.sqrt(variance))
    support = np.arange(-reach, reach + 1)
    masses = np.exp(-(support**2) / (2 * variance))
    summed = np.cumsum(masses) / masses.sum()
    return np.asarray(summed[np.clip(z.astype(np.int64) + reach, 0, 2 * reach)])


def is_rejected(drawn: NDArray[np.int64], variance: float) -> bool:
    """Whether the draws deviate from the law of `variance`, over bins between its quantiles."""
    deviation = math.sqrt(variance)
    # For small variances many quantiles round to the same integer, and the bins are fewer.
    wanted = np.concatenate([ndtri(np.arange(1, BINS) / BINS), [-3.5, 3.5]]) * deviation
    edges = np.unique(np.round(wanted))
    law = np.diff(np.concatenate([[0.0], cumulative(variance, edges), [1.0]]))
    counts = np.bincount(np.searchsorted(edges, drawn.astype(np.float64), side="left"), minlength=len(law))
    return deviates(counts, law, LEVEL)


def draws(variance: Fraction, label: str) -> NDArray[np.int64]:
    return DiscreteGaussian(variance).draw(DRAWS, KeyedStream.derive(b"\x06" * 32, label, str(variance)))


@pytest.mark.parametrize("variance", VARIANCES)
def test_draws_follow_the_law(variance: Fraction) -> None:
    assert not is_rejected(draws(variance, "law"), float(variance))


@pytest.mark.parametrize("variance", VARIANCES[1:])
@pytest.mark.parametrize("factor", [Fraction(81, 100), Fraction(100, 81)])
def test_a_wrong_scale_is_rejected(variance: Fraction, factor: Fraction) -> None:
    assert is_rejected(draws(variance * factor, "wrong scale"), float(variance))


def test_continuous_noise_rounded_and_a_one_sided_law_are_rejected() -> None:
    variance = Fraction(1, 3)
    drawn = draws(variance, "mutants")
    assert not is_rejected(drawn, float(variance))
    assert is_rejected(np.abs(drawn), float(variance))
    rounded = np.round(np.random.default_rng(1).normal(0, math.sqrt(variance), DRAWS)).astype(np.int64)
    assert is_rejected(rounded, float(variance))


@pytest.mark.parametrize("variance", VARIANCES[3:])
def test_moments_are_those_of_the_law(variance: Fraction) -> None:
    # For large variances z / sigma is normal to 10^-6, so its sum of squares has the chi-square law.
    scaled = draws(variance, "moments") / math.sqrt(variance)
    squares = float(np.sum(scaled**2)) * np.array([1 + 1e-6, 1 - 1e-6])
    assert chi2.cdf(squares[0], DRAWS) >= LEVEL / 3
    assert chi2.sf(squares[1], DRAWS) >= LEVEL / 3
    assert abs(float(np.mean(scaled))) <= -float(ndtri(LEVEL / 6)) / math.sqrt(DRAWS)


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("chance", [0.02, 1e-3])
def test_a_proven_quantile_is_exceeded_no_more_often_than_stated(variance: Fraction, chance: float) -> None:
    quantile = DiscreteGaussian(variance).quantile(chance)
    beyond = int(np.count_nonzero(draws(variance, "tails") > quantile))
    counts = np.array([DRAWS - beyond, beyond])
    # Fewer may exceed it, as it is a bound; more may not.
    assert beyond <= DRAWS * chance or not deviates(counts, np.array([1 - chance, chance]), LEVEL)


@pytest.mark.parametrize("lag", [1, 2])
def test_successive_draws_are_uncorrelated(lag: int) -> None:
    # Hoeffding's bound: the products are +-1 with mean 0 under independence, and no draw is in two of the pairs.
    drawn = draws(Fraction(10**12), "independence")
    signs = np.where(drawn >= 0, 1, -1)
    pairs = np.arange(0, DRAWS - lag, 2 * lag)
    threshold = math.sqrt(2 * math.log(2 / LEVEL) / len(pairs))
    assert abs(float((signs[pairs] * signs[pairs + lag]).mean())) <= threshold + 1e-5
