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

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve
from scipy.special import ndtr

from equipoise.accounting import (
    ApproximateDpEvent,
    Cost,
    PrivacyEvent,
    PureDpEvent,
    ZcdpEvent,
    charge_at,
    charge_of,
    events_to_json,
)
from equipoise.errors import BudgetExhausted
from equipoise_server.conversion import epsilon_for
from equipoise_server.ledger.accounts import Account, total_with
from equipoise_server.ledger.caps import Cap, Composition, limits
from equipoise_server.ledger.charges import Charge

Value = NDArray[np.float64]  # of going on, by the loss so far
Rule = Callable[[Cost, PrivacyEvent], Cost | None]  # what is committed with one more part; None where it is refused
STEPS = 12  # of a bisection for what is left


def by_ledger(name: str, cap: Cap) -> Rule:
    """The ledger's own rule, by the functions that a reservation goes through."""
    empty = Account(name, "t", Composition.SEQUENTIAL, cap, limits(cap), Cost(), Cost())

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

    def after(self, value: Value, part: PrivacyEvent) -> Value:
        """Any of these, by what it is charged as."""
        if isinstance(part, ZcdpEvent):
            return self.gaussian(value, float(part.rho))
        assert isinstance(part, ApproximateDpEvent)
        return self.pair(value, float(part.epsilon), float(part.delta))

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


def last_rounds(add: Rule, total: Cost, cap: Cap, on: Losses) -> Value:
    """The best last round that spends all that is left: pure, or with some of delta, or with most of it."""
    value = on.stop()
    for share in (Fraction(0), Fraction(1, 4), Fraction(49, 100)):
        rest = all_that_is_left(add, total, cap, share * Fraction(cap.delta))
        if rest is not None:
            value = np.maximum(value, on.after(on.stop(), rest))
    return value


def after_growing_rounds(add: Rule, cap: Cap, rounds: Sequence[PrivacyEvent], on: Losses) -> float:
    """Delta of these rounds in order, as far as they fit, the operator stopping with a last one when it likes."""
    totals, total = [], Cost()
    for part in rounds:
        grown = add(total, part)
        if grown is None:
            break
        total = grown
        totals.append(total)
    value = last_rounds(add, totals[-1], cap, on)
    for before, part in zip(reversed(totals[:-1]), reversed(rounds[1 : len(totals)]), strict=True):
        value = np.maximum(last_rounds(add, before, cap, on), on.after(value, part))
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
