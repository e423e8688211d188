"""An attribute of two categories that is measured with noise: what a prior may be told, and with which chance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from harness.exact_game import Law, renyi
from numpy.typing import NDArray

from equipoise.accounting.residuals import PARAMETER_BITS
from equipoise.queries.record_list import RecordList
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise_server.mechanisms.prior.known_answers import MeasuredPrior
from equipoise_server.mechanisms.prior.measure import fitted_prior
from equipoise_server.mechanisms.prior.plan import PriorParameters
from equipoise_server.mechanisms.prior.support import ListedSupport, Support, Universe
from equipoise_server.mechanisms.residuals.direct import UniformReach
from equipoise_server.mechanisms.residuals.measurement import Measured

MAX_INTEGER = 6  # of the measured integers: those beyond are left out
ORDERS = (1.25, 1.5, 2.0)  # whose moments lie within the integers that are kept
WIDE = 1 << 40  # every interval of the measurement is narrow enough


def prior_of(sizes: tuple[int, ...], variance: Fraction) -> PriorParameters:
    """A measurement of the first attribute alone, with noise of this variance."""
    family = ResidualFamily.closed(sizes, [(0,)])
    return PriorParameters.of(ResidualNoise.of(family, (int(variance * 2**PARAMETER_BITS),)))


def measured_numbers(counts: NDArray[np.int64], variance: Fraction) -> Iterator[tuple[tuple[int, int], float]]:
    """Every outcome of the measurement of the two categories' counts, with its probability.

    The residual of an attribute of two categories is `2 x - n`.
    """
    exact = 2 * counts - int(counts.sum())
    weights = {z: math.exp(-z * z / (2 * float(variance))) for z in range(-20, 21)}
    total = sum(weights.values())
    for one, other in itertools.product(range(-MAX_INTEGER, MAX_INTEGER + 1), repeat=2):
        yield (one, other), math.prod(weights[z] / total for z in (np.array([one, other]) - exact).tolist())


def support_at(sizes: tuple[int, ...], places: tuple[int, ...]) -> Support:
    """The universe, or a list of some of its records, maybe several times; `places`: of them, none for all."""
    if not places:
        return Universe(sizes)
    codes = np.stack(np.unravel_index(places, sizes)).astype(np.uint8)
    return ListedSupport(RecordList(sizes, codes))


def known_from(
    prior: PriorParameters, records: int, numbers: tuple[int, int], places: tuple[int, ...] = ()
) -> MeasuredPrior:
    """What a session knows that measured these numbers; `places`: of its support (`support_at`)."""
    measured = Measured(prior.noise, records, {(0,): np.array(numbers)})
    support, reach = support_at(prior.noise.sizes, places), UniformReach(prior.noise.family, Fraction(1, 10))
    return MeasuredPrior(support, fitted_prior(prior, measured, support), measured, reach)


def divergence(one: Law, other: Law, order: float) -> float:
    """The Renyi divergence, infinite where what can be seen under one cannot under the other."""
    if any(one[key] > 1e-12 and other.get(key, 0.0) == 0.0 for key in one):
        return math.inf
    both = {key: chance for key, chance in one.items() if chance > 1e-300 and other.get(key, 0.0) > 1e-300}
    return renyi(both, other, order)
