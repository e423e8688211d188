"""An operator who wants to break a cap: it sees every result before it chooses the next round, and chooses best.

What it can reach is computed by backward induction over the privacy loss `Z`, the logarithm of the likelihood ratio
of all results so far for two neighbours. The largest delta at the cap's epsilon over all ways to go on is the mean
of `(1 - exp(epsilon - Z))^+` under the first neighbour when the operator stops. Losses are rounded to a grid: all
downwards, so that what comes out is reached for certain, or all upwards, so that nothing reaches more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve
from scipy.special import ndtr
from scipy.stats import binom

from equipoise.accounting import (
    RHO_UNIT,
    ApproximateDpEvent,
    Cost,
    Mixture,
    PrivacyEvent,
    PureDpEvent,
    ThresholdTests,
    ZcdpEvent,
    charge_at,
    charge_of,
    events_to_json,
)
from equipoise.errors import BudgetExhausted
from equipoise_server.conversion import epsilon_for, largest_rho
from equipoise_server.ledger.accounts import Account, total_with
from equipoise_server.ledger.caps import Cap, Composition, limits
from equipoise_server.ledger.charges import Charge

Value = NDArray[np.float64]  # of going on, by the loss so far
Rule = Callable[[Cost, PrivacyEvent], Cost | None]  # what is committed with one more part; None where it is refused
STEPS = 12  # of a bisection for what is left
TESTS = 4  # against a threshold, in one round
RARE = 1e-12  # what is as improbable as this is taken for certain to tell all, or nothing
ROOM = Fraction(9999, 10_000)  # of all rho, so that no rounding makes the last round too large
PURE = (Fraction(0),)
WITH_DELTA = (Fraction(0), Fraction(1, 4), Fraction(49, 100))


def by_ledger(name: str, cap: Cap) -> Rule:
    """The ledger's own rule, by the functions of a reservation; without an order the worst round counts."""
    composition = Composition.PARALLEL if cap.order is None else Composition.SEQUENTIAL
    empty = Account(name, "t", composition, cap, limits(cap), Cost(), Cost())

    def add(total: Cost, part: PrivacyEvent) -> Cost | None:
        charge = Charge(name, charge_of([part]), events_to_json("test", [part]))
        try:
            return total_with(replace(empty, committed=total), charge.counted(cap.order))
        except BudgetExhausted:
            return None

    return add


def at_the_best_order_afterwards(cap: Cap) -> Rule:
    """A rule that is none: rhos and pairs add, and the sum is converted at whatever order is best for it."""

    def add(total: Cost, part: PrivacyEvent) -> Cost | None:
        added = total + charge_of([part])
        return added if epsilon_for(added, cap.delta) <= cap.epsilon else None

    return add


def with_limits(cap: Cap, limit: Cost, rho_by_itself: bool = False) -> Rule:
    """A rule at the cap's order with limits of its own, which may be wrong; it may forget to count the order."""

    def add(total: Cost, part: PrivacyEvent) -> Cost | None:
        counted = charge_at([part], cap.order or 0)
        if rho_by_itself and isinstance(part, ZcdpEvent | PureDpEvent):
            counted = Cost(divergence=charge_of([part]).rho)
        added = total + counted
        return added if added.divergence <= limit.divergence and added.delta <= limit.delta else None

    return add


def all_rho(cap: Cap) -> Fraction:
    """As much zCDP as fits, as the cap counts."""
    if cap.order is None:
        return ROOM * Fraction(largest_rho(cap.epsilon, cap.delta), RHO_UNIT)
    return ROOM * Fraction(limits(cap).divergence, RHO_UNIT) / Fraction(cap.order)


def growing(cap: Cap, rounds: int, power: int) -> list[PrivacyEvent]:
    """Gaussian rounds that use up all zCDP: after `i` of them `(i / rounds)^power` of it is spent."""
    most = all_rho(cap)
    spent = [most * Fraction(number, rounds) ** power for number in range(rounds + 1)]
    return [ZcdpEvent("answers", after - before) for before, after in pairwise(spent)]


@dataclass
class Losses:
    """A grid of losses, on which rounds act: each gives the value before it from the value after it."""

    epsilon: float
    upwards: bool
    points: int = 1 << 15
    losses: Value = field(init=False)

    def __post_init__(self) -> None:
        self.losses = np.linspace(-self.epsilon - 2, 2 * self.epsilon + 3, self.points)

    @property
    def step(self) -> float:
        """The distance of two losses."""
        return float(self.losses[1] - self.losses[0])

    def stop(self) -> Value:
        """The value of what has been seen, and nothing more."""
        return -np.expm1(np.minimum(0, self.epsilon - self.losses))

    def at_none(self, value: Value) -> float:
        """The value before the first round."""
        place = -self.losses[0] / self.step
        return float(value[math.ceil(place) if self.upwards else math.floor(place)])

    def gaussian(self, value: Value, rho: float) -> Value:
        """A Gaussian answer of `rho` in zCDP: its loss is normal with mean `rho` and variance `2 rho`."""
        deviation = math.sqrt(2 * rho)
        most = math.ceil(9 * deviation / self.step) + 1
        edges = np.arange(round(rho / self.step) - most, round(rho / self.step) + most + 2)
        chances = np.diff(ndtr((edges * self.step - rho) / deviation))
        moves = edges[1:] if self.upwards else edges[:-1]
        low, high = max(0, -int(moves[0])), max(0, int(moves[-1]))
        wide = np.concatenate([np.full(low, self._below(value)), value, np.full(high, self._above(value))])
        mixed = fftconvolve(wide, chances[::-1], mode="valid")[low + int(moves[0]) :][: value.size]
        return np.clip(mixed, 0, 1)

    def response(self, value: Value, epsilon: float) -> Value:
        """Randomised response, which is `epsilon`-DP and tells more than any other such mechanism."""
        right = 1 / (1 + math.exp(-epsilon))
        return right * self._moved(value, epsilon) + (1 - right) * self._moved(value, -epsilon)

    def pair(self, value: Value, epsilon: float, delta: float) -> Value:
        """All is told with probability `delta`, otherwise randomised response."""
        return delta + (1 - delta) * self.response(value, epsilon)

    def mixture(self, value: Value, part: Mixture) -> Value:
        """How many trials differ is told, and a Gaussian answer that is as large: within what is proven of it."""
        numbers = np.arange(part.trials + 1)
        chances = binom.pmf(numbers, part.trials, float(part.probability))
        told = np.zeros_like(value)
        for number, chance in zip(numbers.tolist(), chances.tolist(), strict=True):
            if chance < RARE:
                told += chance * (1.0 if self.upwards else 0.0)
            else:
                rho = number * number * float(part.rho_of_one)
                told += chance * (self.gaussian(value, rho) if rho else value)
        return np.clip(told, 0, 1)

    def threshold_tests(self, value: Value, part: ThresholdTests) -> Value:
        """Some tests, each of which tells as much as its epsilon allows, for or against; the best way to go on."""
        epsilon, rho = float(part.test_epsilon), float(part.answer_rho)
        often = 1 / (1 + math.exp(-epsilon))
        left = [value] * (part.positives + 1)
        for _ in range(TESTS):
            for positives in range(part.positives, 0, -1):
                answered = self.gaussian(left[positives - 1], rho) if rho else left[positives - 1]
                negative = left[positives]
                best = negative
                for chance, loss in ((often, epsilon), (1 - often, -epsilon)):
                    tested = chance * self._moved(answered, loss) + (1 - chance) * self._moved(negative, -loss)
                    best = np.maximum(best, tested)
                left[positives] = best
        return left[-1]

    def after(self, value: Value, part: PrivacyEvent) -> Value:
        """Any of these, by what it is charged as."""
        match part:
            case ZcdpEvent():
                for _ in range(part.times):
                    value = self.gaussian(value, float(part.rho))
            case PureDpEvent():
                for _ in range(part.times):
                    value = self.response(value, float(part.epsilon))
            case Mixture():
                value = self.mixture(value, part)
            case ThresholdTests():
                value = self.threshold_tests(value, part)
            case ApproximateDpEvent():
                value = self.pair(value, float(part.epsilon), float(part.delta))
            case _:
                raise ValueError(f"nothing is known that costs as much as {part.event}")
        return value

    def _moved(self, value: Value, loss: float) -> Value:
        places = np.arange(value.size) + (math.ceil if self.upwards else math.floor)(loss / self.step)
        moved = value[np.clip(places, 0, value.size - 1)]
        return np.where(places < 0, self._below(value), np.where(places < value.size, moved, self._above(value)))

    def _below(self, value: Value) -> float:
        """As no value falls with the loss."""
        return float(value[0]) if self.upwards else 0.0

    def _above(self, value: Value) -> float:
        return 1.0 if self.upwards else float(value[-1])


def all_that_is_left(add: Rule, total: Cost, cap: Cap, delta: Fraction) -> ApproximateDpEvent | None:
    """The largest pair with this delta that still fits."""
    low, high = Fraction(0), Fraction(cap.epsilon)
    if add(total, ApproximateDpEvent("rest", low, delta)) is None:
        return None
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if add(total, ApproximateDpEvent("rest", middle, delta)) is None else (middle, high)
        )
    return ApproximateDpEvent("rest", low, delta)


def last_rounds(add: Rule, total: Cost, cap: Cap, on: Losses, shares: Sequence[Fraction] = WITH_DELTA) -> Value:
    """The best last round that spends all that is left, with one of these shares of delta."""
    value = on.stop()
    for share in shares:
        rest = all_that_is_left(add, total, cap, share * Fraction(cap.delta))
        if rest is not None:
            value = np.maximum(value, on.after(on.stop(), rest))
    return value


def after_growing_rounds(
    add: Rule, cap: Cap, rounds: Sequence[PrivacyEvent], on: Losses, shares: Sequence[Fraction] = WITH_DELTA
) -> float:
    """Delta of these rounds in order, as far as they fit, the operator stopping with a last one when it likes."""
    totals, total = [], Cost()
    for part in rounds:
        grown = add(total, part)
        if grown is None:
            break
        total = grown
        totals.append(total)
    value = last_rounds(add, totals[-1], cap, on, shares)
    for before, part in zip(reversed(totals[:-1]), reversed(rounds[1 : len(totals)]), strict=True):
        value = np.maximum(last_rounds(add, before, cap, on, shares), on.after(value, part))
    return on.at_none(on.after(value, rounds[0]))


def after_any_rounds(add: Rule, cap: Cap, menu: Sequence[PrivacyEvent], on: Losses) -> float:
    """Delta of the best of all ways to choose rounds from a menu, as often and in whatever order they fit."""
    found: dict[Cost, Value] = {}

    def best(total: Cost) -> Value:
        if total not in found:
            value = last_rounds(add, total, cap, on)
            for part in menu:
                grown = add(total, part)
                if grown is not None:
                    value = np.maximum(value, on.after(best(grown), part))
            found[total] = value
        return found[total]

    return on.at_none(best(Cost()))
