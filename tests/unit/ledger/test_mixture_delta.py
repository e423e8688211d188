"""The server's delta of a mixture, where only numbers of differing draws decide that hardly ever come."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from equipoise.accounting import BinomialMixture
from equipoise.verification import pairs
from equipoise_server.conversion import NEGLIGIBLE, delta_of_rho, mixture_delta


@pytest.mark.sparse(3)
@pytest.mark.thin(4)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("trials", "from_which", "epsilon"), [(400, 305, 1e5), (2000, 1225, 1e6), (2000, 1240, 1e5), (100, 100, 1e3)]
)
def test_what_is_not_summed_counts_as_lost(trials: int, from_which: int, epsilon: float) -> None:
    """The first two: beyond where the sum stops, and in groups that have not ended there, all is lost."""
    mixture = BinomialMixture(trials, 0.5, epsilon / from_which**2)
    numbers = np.arange(trials + 1)
    deltas = [delta_of_rho(float(each**2 * mixture.rho_of_one), epsilon) for each in numbers]
    summed = float(stats.binom.pmf(numbers, trials, 0.5) @ deltas)
    assert summed > NEGLIGIBLE / 10
    assert summed <= mixture_delta(mixture, epsilon) <= 2 * summed + 10 * NEGLIGIBLE
    assert summed <= pairs.mixture_delta(mixture, epsilon) * (1 + 1e-9) <= mixture_delta(mixture, epsilon)


@pytest.mark.parametrize("rho", [5e-324, 1e-30, 1e-17, 2.0**-53, 2.0**-52, 1e-15])
def test_a_loss_that_doubles_cannot_tell_from_none_has_a_delta(rho: float) -> None:
    """An operator may force a game to learn as slowly as it likes; the library raises at such divergences."""
    of_gaussian_noise = math.erf(math.sqrt(rho) / 2)  # its total variation
    assert of_gaussian_noise <= delta_of_rho(rho, 0.0) <= 1e-7
    assert delta_of_rho(rho, 1.0) <= 1e-100
    assert mixture_delta(BinomialMixture(9, 0.5, rho), 1.0) <= 10 * NEGLIGIBLE
