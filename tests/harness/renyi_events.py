"""Privacy events of every kind, and their divergences by another library."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from equipoise.accounting import ApproximateDpEvent, BinomialMixture, Mixture, PrivacyEvent, PureDpEvent, ZcdpEvent
from equipoise_server.conversion import mixture_delta

PLAY = BinomialMixture(trials=400, probability=0.02, rho_of_one=1e-4)


def played(mixture: BinomialMixture, epsilon: float) -> Mixture:
    """What sampled play is charged with: the mixture, and its pair."""
    made = (Fraction(mixture.probability), Fraction(mixture.rho_of_one))
    return Mixture("game", mixture.trials, *made, Fraction(epsilon), Fraction(mixture_delta(mixture, epsilon)))


def diverges(mixture: BinomialMixture, order: float) -> float:
    """The mixture's divergence by another library's binomial law."""
    differing = np.arange(mixture.trials + 1)
    chances = stats.binom.logpmf(differing, mixture.trials, mixture.probability)
    exponents = order * (order - 1) * mixture.rho_of_one * differing**2
    return float(logsumexp(chances + exponents)) / (order - 1)


# One of each kind.
EVERY: tuple[PrivacyEvent, ...] = (
    ZcdpEvent("answers", Fraction(1, 7000), 3),
    PureDpEvent("tests", Fraction(1, 50), 7),
    ApproximateDpEvent("places", Fraction(1, 30), Fraction(1, 10**9)),
    played(PLAY, 1.0),
)
