"""Fresh noise for statements: its distribution, scale, cost and half-width.

When a record is replaced, one count of a predicate changes by 1, or two counts of a marginal change by 1 each; sums
change by at most as much. So
the number `l1_sensitivity` (1 or 2) is both the L1 sensitivity, which scales Laplace noise, and the square of the
L2 sensitivity, which scales Gaussian noise. The kind of a statement is private, so the noise of both kinds is
calibrated to the same cost.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise import accounting
from equipoise.accounting import PrivacyEvent, PureDpEvent, ZcdpEvent
from equipoise.model.results import AnswerMethod, Answers
from equipoise.queries.statements import MAX_STATEMENT_SENSITIVITY
from equipoise.records.codec import COUNT, FRACTION, Codec, converted, either, list_of, object_codec
from equipoise_server.mechanisms.answers import answers_within, noisy_on_grid, standard_error_on_grid
from equipoise_server.mechanisms.budget_rounding import epsilon_within
from equipoise_server.randomness.discrete_gaussian import MIN_VARIANCE, DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

MAX_MOVED = MAX_STATEMENT_SENSITIVITY
VARIANCE_BITS = 20  # variances are rounded up to units of 2^-20


class NoiseDistribution(Hashable, Protocol):
    """A distribution of integer noise."""

    @property
    def variance(self) -> Fraction:
        """The variance, or a little more."""
        ...

    def draw(self, count: int, stream: KeyedStream) -> NDArray[np.int64]:
        """Draw independent integers, int64[count]."""
        ...

    def quantile(self, probability: Fraction | float) -> int:
        """Return a z for which P(Z > z) <= probability is proven. The distribution is symmetric."""
        ...

    def truncation_delta(self) -> Fraction:
        """Return the total variation distance of one draw from the ideal distribution that is accounted for."""
        ...


@dataclass(frozen=True)
class LaplaceNoise:
    """Discrete Laplace noise: each statement's answer is `epsilon`-DP."""

    epsilon: Fraction
    name: str = "laplace"
    method: ClassVar[AnswerMethod] = AnswerMethod.LAPLACE

    @classmethod
    def within(cls, rho: Fraction) -> LaplaceNoise:
        """Return the least noise for which one statement costs at most `rho` in zCDP."""
        return cls(epsilon_within(rho))

    def law(self, l1_sensitivity: int) -> NoiseDistribution:
        """Return the noise of each count of a statement with this L1 sensitivity."""
        return DiscreteLaplace(self.epsilon / l1_sensitivity)

    def rho(self, answers: int) -> Fraction:
        """Return the cost of `answers` statements in zCDP (`accounting.laplace_rho`)."""
        return accounting.laplace_rho(self.epsilon, answers)

    def part(self, answers: int) -> PrivacyEvent:
        """Return the privacy event of `answers` statements."""
        return PureDpEvent("answers", self.epsilon, answers)


@dataclass(frozen=True)
class GaussianNoise:
    """Discrete Gaussian noise, with `variance` for a predicate and `l1_sensitivity` times `variance` in general."""

    variance: Fraction
    name: str = "gaussian"
    method: ClassVar[AnswerMethod] = AnswerMethod.GAUSSIAN

    @classmethod
    def within(cls, rho: Fraction) -> GaussianNoise:
        """Return the least noise for which one statement costs at most `rho` in zCDP."""
        units = -(-(1 << VARIANCE_BITS) * rho.denominator // (2 * rho.numerator))
        return cls(max(MIN_VARIANCE, Fraction(units, 1 << VARIANCE_BITS)))

    def law(self, l1_sensitivity: int) -> NoiseDistribution:
        """Return the noise of each count of a statement whose squared L2 sensitivity is `l1_sensitivity`."""
        return DiscreteGaussian(self.variance * l1_sensitivity)

    def rho(self, answers: int) -> Fraction:
        """Return the cost of `answers` statements of any kind in zCDP (`accounting.gaussian_rho`)."""
        return accounting.gaussian_rho(Fraction(1), self.variance, answers)

    def part(self, answers: int) -> PrivacyEvent:
        """Return the privacy event of `answers` statements, in zCDP.

        Tighter accountants of continuous Gaussian noise are not proven for discrete noise.
        """
        return ZcdpEvent("answers", self.rho(1), answers)


AnswerNoise = LaplaceNoise | GaussianNoise
NOISES: tuple[type[LaplaceNoise] | type[GaussianNoise], ...] = (LaplaceNoise, GaussianNoise)


def fresh_answers(
    noise: AnswerNoise,
    l1_sensitivity: int,
    counts: NDArray[np.int64],
    records: int,
    half_width: int,
    stream: KeyedStream,
) -> Answers:
    """Answer one statement with fresh noise. The answers are unbiased, so only their intervals are cut at 0 and 1.

    Args:
        noise: the kind and scale of the noise.
        l1_sensitivity: of the statement, 1 or 2.
        counts: the exact counts of all its cells, int64[k].
        records: `n`, how many records the table has.
        half_width: of the intervals, in units of 2^-40.
        stream: the randomness of this answer alone.
    """
    law = noise.law(l1_sensitivity)
    noisy = counts + law.draw(len(counts), stream)
    error = standard_error_on_grid(law.variance, records)
    return answers_within(noisy_on_grid(noisy, records), noise.method, half_width, error)


LAPLACE_NOISE: Codec[LaplaceNoise] = object_codec(
    LaplaceNoise, {"epsilon": ("epsilon", FRACTION)}, {"name": "laplace"}
)
GAUSSIAN_NOISE: Codec[GaussianNoise] = object_codec(
    GaussianNoise, {"variance": ("variance", FRACTION)}, {"name": "gaussian"}
)
NOISE: Codec[AnswerNoise] = either(
    "name", {"laplace": (LaplaceNoise, LAPLACE_NOISE), "gaussian": (GaussianNoise, GAUSSIAN_NOISE)}
)


def _pair(values: tuple[int, ...]) -> tuple[int, int]:
    one, other = values
    return one, other


# One for predicates, and one for marginals.
NOISE_HALF_WIDTHS: Codec[tuple[int, int]] = converted(list_of(COUNT), lambda pair: pair, _pair)
