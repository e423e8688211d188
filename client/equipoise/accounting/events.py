"""A charge in named parts, each with the guarantee that was proven for it.

An auditor reads from the journal what a round was charged for, part by part, and can add it up again with any
accountant: `equipoise_server.conversion.event_of` makes `dp_accounting` events of the same parts.

Every part says what it is in both accountings that an account can have: `amounts` as a rho beside a pair, and
`divergence` at one Renyi order, but for a probability of its delta.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from equipoise.accounting.cost import DELTA_UNIT, RHO_UNIT, Cost, float_above, rounded_up
from equipoise.accounting.game import BinomialMixture
from equipoise.accounting.renyi import mixture_divergence
from equipoise.accounting.repair import pure_rho
from equipoise.accounting.threshold_tests import threshold_tests_divergence


@dataclass(frozen=True)
class ZcdpEvent:
    """`times` mechanisms, each `rho`-zCDP (Bun & Steinke 2016)."""

    name: str
    rho: Fraction
    times: int = 1
    event: ClassVar[str] = "ZCDpEvent"

    def amounts(self) -> tuple[Fraction, Fraction, Fraction]:
        """Rho, epsilon and delta that are charged."""
        return self.times * self.rho, Fraction(0), Fraction(0)

    def divergence(self, order: Fraction) -> tuple[Fraction, Fraction]:
        """At most `order rho` each, by definition (Bun & Steinke 2016, Definition 1.1); never an exception."""
        return order * self.times * self.rho, Fraction(0)


@dataclass(frozen=True)
class PureDpEvent:
    """`times` mechanisms, each `epsilon`-DP.

    The charge is `epsilon^2 / 2` in zCDP each (Bun & Steinke 2016, Proposition 1.4). An accountant of privacy
    losses may do better from the epsilon: whatever such a mechanism releases about two neighbours can be made from
    one bit of randomised response that is right with probability `e^epsilon / (1 + e^epsilon)` (Kairouz, Oh &
    Viswanath 2015).
    """

    name: str
    epsilon: Fraction
    times: int = 1
    event: ClassVar[str] = "pure"

    def amounts(self) -> tuple[Fraction, Fraction, Fraction]:
        """Rho, epsilon and delta that are charged."""
        return pure_rho(self.epsilon, self.times), Fraction(0), Fraction(0)

    def divergence(self, order: Fraction) -> tuple[Fraction, Fraction]:
        """At most `order epsilon^2 / 2` (Bun & Steinke 2016, Proposition 1.4) and at most epsilon each."""
        return self.times * pure_divergence(self.epsilon, order), Fraction(0)


@dataclass(frozen=True)
class ApproximateDpEvent:
    """An (`epsilon`, `delta`) pair, added by basic composition: `dp_accounting` has no event for it."""

    name: str
    epsilon: Fraction
    delta: Fraction
    event: ClassVar[str] = "pair"

    def amounts(self) -> tuple[Fraction, Fraction, Fraction]:
        """Rho, epsilon and delta that are charged."""
        return Fraction(0), self.epsilon, self.delta

    def divergence(self, order: Fraction) -> tuple[Fraction, Fraction]:
        """Returns that of a pure mechanism of the same epsilon, but for a probability of delta.

        Where two laws are (epsilon, delta)-close in both directions, they are mixtures `(1 - delta) P' + delta P''`
        and `(1 - delta) Q' + delta Q''` with `P'` and `Q'` within `e^epsilon` of each other everywhere (Kairouz, Oh
        & Viswanath 2015: both can be made from one bit, told by randomised response but with probability delta as
        it is).
        """
        return pure_divergence(self.epsilon, order), self.delta


@dataclass(frozen=True)
class Mixture:
    """A `BinomialMixture`: of `w^2 rho_of_one`-zCDP losses, with `w` at most Binomial(trials, probability).

    `epsilon`, `delta`: the pair that stands for it where pairs are added; it costs no delta at a Renyi order.
    """

    name: str
    trials: int
    probability: Fraction
    rho_of_one: Fraction
    epsilon: Fraction
    delta: Fraction
    event: ClassVar[str] = "mixture"

    def amounts(self) -> tuple[Fraction, Fraction, Fraction]:
        """Rho, epsilon and delta that are charged."""
        return Fraction(0), self.epsilon, self.delta

    def divergence(self, order: Fraction) -> tuple[Fraction, Fraction]:
        """As `renyi.mixture_curve` proves it; never an exception."""
        mixture = BinomialMixture(self.trials, float_above(self.probability), float_above(self.rho_of_one))
        return Fraction(mixture_divergence(mixture, float(order))), Fraction(0)


@dataclass(frozen=True)
class ThresholdTests:
    """Tests against a public threshold, the sign of each `test_epsilon`-DP, until `positives` are answered.

    An answer costs `answer_rho` in zCDP, and is in this part, as tests and answers follow one another. `epsilon`,
    `delta`: the pair that stands for all of it where pairs are added, and at Renyi orders where it counts less.
    """

    name: str
    positives: int
    test_epsilon: Fraction
    answer_rho: Fraction
    epsilon: Fraction
    delta: Fraction
    event: ClassVar[str] = "threshold tests"

    def amounts(self) -> tuple[Fraction, Fraction, Fraction]:
        """Rho, epsilon and delta that are charged."""
        return Fraction(0), self.epsilon, self.delta

    def divergence(self, order: Fraction) -> tuple[Fraction, Fraction]:
        """By the theorem of `threshold_tests`; what the pair counts (`ApproximateDpEvent`), where that is less."""
        tests = threshold_tests_divergence(
            float(self.test_epsilon), self.positives, float(self.answer_rho), float(order)
        )
        pair = pure_divergence(self.epsilon, order)
        return (Fraction(tests), Fraction(0)) if tests <= pair else (pair, self.delta)


@dataclass(frozen=True)
class RenyiEvent:
    """What is known by its Renyi divergence at one order only: what was lost of an account that counts so."""

    name: str
    order: Fraction
    bound: Fraction
    event: ClassVar[str] = "renyi"

    def amounts(self) -> tuple[Fraction, Fraction, Fraction]:
        """Refused: as a rho it is not bounded at all."""
        raise ValueError("events: known at a Renyi order only")

    def divergence(self, order: Fraction) -> tuple[Fraction, Fraction]:
        """Divergences grow with the order: at smaller ones the bound holds too; beyond, nothing is known."""
        if order > self.order:
            raise ValueError("events: known at a smaller Renyi order only")
        return self.bound, Fraction(0)


PrivacyEvent = ZcdpEvent | PureDpEvent | ApproximateDpEvent | Mixture | ThresholdTests | RenyiEvent


def charge_of(parts: Iterable[PrivacyEvent]) -> Cost:
    """Returns the sum of all parts, rounded up once to whole units.

    >>> charge_of([PureDpEvent("detection", Fraction(1, 10), 4), ZcdpEvent("answers", Fraction(1, 100), 4)])
    Cost(rho=60000000000, epsilon=0, delta=0, divergence=0)
    """
    amounts = [part.amounts() for part in parts]
    rho, epsilon, delta = (sum((amount[place] for amount in amounts), Fraction(0)) for place in range(3))
    return Cost(rounded_up(rho, RHO_UNIT), rounded_up(epsilon, RHO_UNIT), rounded_up(delta, DELTA_UNIT))


def charge_at(parts: Iterable[PrivacyEvent], order: float) -> Cost:
    """Returns what a charge counts on an account of one Renyi order: divergence and delta, in whole units.

    The sum is rounded up once.

    Both add over successive mechanisms, also where what each is was chosen after seeing earlier results, as long as
    the order and both limits were fixed before: Theorem 1 of `docs/privacy-filter.md`, whose core is the
    composition theorem of Feldman & Zrnic 2021 for adaptively chosen Renyi divergences at one order.

    Args:
        parts: what one mechanism does, one event after the other.
        order: of the account, above 1.

    >>> charge_at([ZcdpEvent("answers", Fraction(1, 100)), PureDpEvent("tests", Fraction(1, 10), 4)], order=5)
    Cost(rho=0, epsilon=0, delta=0, divergence=150000000000)
    """
    divergences = [part.divergence(Fraction(order)) for part in parts]
    divergence, delta = (sum((each[place] for each in divergences), Fraction(0)) for place in range(2))
    return Cost(delta=rounded_up(delta, DELTA_UNIT), divergence=rounded_up(divergence, RHO_UNIT))


def pure_divergence(epsilon: Fraction, order: Fraction) -> Fraction:
    """Returns what epsilon-DP is at most at a Renyi order: the smaller of epsilon and `order epsilon^2 / 2`.

    Args:
        epsilon: of the mechanism, at least 0.
        order: above 1.
    """
    return min(epsilon, order * pure_rho(epsilon))
