"""Noise for statements answered afresh: which law, how much of it, what it costs, how far it reaches.

A statement's counts move by 1 each when a record is replaced: in one place for a predicate, in two for a marginal.
So one number `l1_sensitivity` (1 or 2) is both the L1 sensitivity, by which Laplace noise is scaled, and the square
of the L2 sensitivity, by which Gaussian noise is. Which statement is of which kind is private; hence the noise of
each is calibrated to one cost for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise import accounting
from equipoise.accounting import PrivacyEvent, PureDpEvent, ZcdpEvent
from equipoise.model.results import AnswerMethod
from equipoise.queries.fixed_point import on_grid
from equipoise.queries.statements import MAX_STATEMENT_SENSITIVITY
from equipoise.records.codec import COUNT, FRACTION, Codec, converted, either, list_of, object_codec
from equipoise_server.mechanisms.budget_rounding import epsilon_within
from equipoise_server.randomness.discrete_gaussian import MIN_VARIANCE, DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

MAX_MOVED = MAX_STATEMENT_SENSITIVITY
VARIANCE_BITS = 20  # variances are rounded up to units of 2^-20


class NoiseDistribution(Protocol):
    """Integer noise with a known law."""

    def draw(self, count: int, stream: KeyedStream) -> NDArray[np.int64]:
        """`count` independent integers; shape (count,)."""
        ...

    def quantile(self, probability: Fraction | float) -> int:
        """Return a z for which P(Z > z) <= probability is proven; the law is symmetric."""
        ...

    def truncation_delta(self) -> Fraction:
        """Return the total variation of one draw from the law that is accounted for."""
        ...


@dataclass(frozen=True)
class LaplaceNoise:
    """Discrete Laplace noise: every statement is answered with `epsilon`-DP."""

    epsilon: Fraction
    name: str = "laplace"
    method: ClassVar[AnswerMethod] = AnswerMethod.LAPLACE

    @classmethod
    def within(cls, rho: Fraction) -> LaplaceNoise:
        """Return the least noise for which one statement costs at most `rho` in zCDP."""
        return cls(epsilon_within(rho))

    def law(self, l1_sensitivity: int) -> NoiseDistribution:
        """Return the noise of each count of a statement whose counts move by `l1_sensitivity` in sum."""
        return DiscreteLaplace(self.epsilon / l1_sensitivity)

    def rho(self, answers: int) -> Fraction:
        """Return what `answers` statements cost the data in zCDP (`accounting.laplace_rho`)."""
        return accounting.laplace_rho(self.epsilon, answers)

    def part(self, answers: int) -> PrivacyEvent:
        """Return the same as a part of a charge."""
        return PureDpEvent("answers", self.epsilon, answers)


@dataclass(frozen=True)
class GaussianNoise:
    """Discrete Gaussian noise: `variance` for a predicate, `l1_sensitivity` times as much for what moves more."""

    variance: Fraction
    name: str = "gaussian"
    method: ClassVar[AnswerMethod] = AnswerMethod.GAUSSIAN

    @classmethod
    def within(cls, rho: Fraction) -> GaussianNoise:
        """Return the least noise for which one statement costs at most `rho` in zCDP."""
        units = -(-(1 << VARIANCE_BITS) * rho.denominator // (2 * rho.numerator))
        return cls(max(MIN_VARIANCE, Fraction(units, 1 << VARIANCE_BITS)))

    def law(self, l1_sensitivity: int) -> NoiseDistribution:
        """Return the noise of each count of a statement, the squares of whose moves add up to `l1_sensitivity`."""
        return DiscreteGaussian(self.variance * l1_sensitivity)

    def rho(self, answers: int) -> Fraction:
        """What `answers` statements cost the data in zCDP (`accounting.gaussian_rho`), the same for each kind."""
        return accounting.gaussian_rho(Fraction(1), self.variance, answers)

    def part(self, answers: int) -> PrivacyEvent:
        """The same as a part of a charge: its rho, as no accountant of continuous noise is proven for discrete."""
        return ZcdpEvent("answers", self.rho(1), answers)


AnswerNoise = LaplaceNoise | GaussianNoise
NOISES: tuple[type[LaplaceNoise] | type[GaussianNoise], ...] = (LaplaceNoise, GaussianNoise)


def fresh_answers(
    noise: AnswerNoise, l1_sensitivity: int, counts: NDArray[np.int64], records: int, stream: KeyedStream
) -> NDArray[np.int64]:
    """Return one statement's answers with noise, in units of 2^-40. `counts`: of all its cells.

    They move by `l1_sensitivity` in sum. Kept between 0 and all records, which moves none away from the truth.
    """
    noisy = counts + noise.law(l1_sensitivity).draw(len(counts), stream)
    return on_grid(np.clip(noisy, 0, records), records)


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


# Of predicates and of marginals.
NOISE_BOUNDS: Codec[tuple[int, int]] = converted(list_of(COUNT), lambda pair: pair, _pair)
