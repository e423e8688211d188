"""The query player: dense multiplicative weights, Bregman-projected so that no unit holds more than 1/s.

HRU Algorithm 2 (DMW) with the cap taken per unit and the sign of the payoff turned (HRU's printed sign lets the
play diverge). The actions are every query and its complement; the payoff of `not q` is minus that of `q`, so
one integer a query is the whole state. Plain elementwise arithmetic and sums of integers make every result the
same bits on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting import COEFFICIENT_BITS, DRAW_BITS
from equipoise_server.game.projection import cap_scale
from equipoise_server.randomness.exponential import exponentials
from equipoise_server.randomness.stream import KeyedStream

WEIGHT_BITS = 60
FLOOR = 1 << (DRAW_BITS + 1)  # mixes every draw with a little of the uniform one: weights keep 30 good bits


@dataclass(frozen=True)
class Units:
    """The division of the queries into units: unit `g` has the queries `offsets[g]:offsets[g+1]`.

    `padding` further units have only the constant query: they are public places that nobody filled.
    """

    offsets: NDArray[np.int64]
    padding: int

    @property
    def count(self) -> int:
        """Units in all, padding included: public."""
        return len(self.offsets) - 1 + self.padding


@dataclass(frozen=True)
class Weights:
    """`exp(eta_Q u)` of every query and its complement, and the units' means of them (padding last)."""

    positive: NDArray[np.float64]
    negative: NDArray[np.float64]
    units: NDArray[np.float64]


def weigh(exponents: NDArray[np.int64], units: Units) -> Weights:
    """Return the query player's weights, each within a factor `1 +- 2^-48`.

    `exponents`: int64[k], `eta_Q u` in units of 2^-48, within 300 nats.
    """
    positive = exponentials(exponents)
    negative = 1 / positive
    means = np.ones(units.count)  # a padding unit's query is always answered right: its weight stays 1
    means[: len(units.offsets) - 1] = _unit_means(positive + negative, units.offsets) / 2
    return Weights(positive, negative, means)


def _unit_means(numbers: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean over each unit of positive numbers, within a factor `1 +- 2^-49`. No unit is empty.

    Summed as integers of as many bits as fit into a sum of 63, and as many bits below those: what is cut off is
    less than `2^(1 - 2 bits)` of the sum for each number, below 2^-51 of it for the 2^24 queries that there can be.
    """
    sizes = np.diff(offsets)
    most = int(sizes.max(initial=0))
    if most <= 1:
        return numbers
    bits = 63 - most.bit_length()
    starts = offsets[:-1]
    exponents = np.frexp(np.maximum.reduceat(numbers, starts))[1]
    scales = np.ldexp(1.0, bits - exponents)
    scaled = numbers * np.repeat(scales, sizes)
    high = scaled.astype(np.int64)
    low = ((scaled - high) * 2.0**bits).astype(np.int64)
    sums = np.add.reduceat(high, starts) + np.add.reduceat(low, starts) * 2.0**-bits
    means: NDArray[np.float64] = sums / (scales * sizes)
    return means


def project(weights: NDArray[np.float64], density: float) -> NDArray[np.float64]:
    """Return the Bregman projection `Gamma_s`: masses `min(1, c W_g) / s` with `c` such that they sum to 1.

    `weights`: float64[G], from 2^-500 to 2^500; `density`: from 1, below G. (HRU Definition 3.1; Herbster & Warmuth
    2001 for the projection.)

    Formal guarantees. A capped unit's mass is `A / 2^60`, `A` an integer of at most 53 bits with
    `A <= 2^60 / density`: no mass exceeds `1/density`, exactly. Every mass times `2^60 / A` lies between
    `min(1, c W_g)` and `min(1, c W_g) (1 + 2^-49)`, unless it is below 2^-1000. Proof: four roundings, each within
    a factor `1 +- 2^-53`, are outweighed by the factor `1 + 2^-50`, and rounding and minima are monotone.
    """
    scale = float(cap_scale(weights, density)) * (1 + 2.0**-50)
    masses: NDArray[np.float64] = np.minimum(1.0, scale * weights) * (_most_weight(density) / 2.0**WEIGHT_BITS)
    return masses


def _most_weight(density: float) -> int:
    """The largest integer of at most 53 bits that is at most `2^60 / density`: the weight of a capped unit."""
    most = math.floor((1 << WEIGHT_BITS) / Fraction(density))
    spare = max(0, most.bit_length() - 53)
    return most >> spare << spare


def mixed_action(exponents: NDArray[np.int64], units: Units, density: float) -> NDArray[np.int64]:
    """Return the player's mixed action as signed coefficients of the queries: int64[k] in units of 2^-44.

    `sum_a P(a) a(x)` is `sum_q (P(q) - P(not q)) q(x)` plus a constant, which the data player does not feel.

    Args:
        exponents: of the queries, int64[k], in nats 2^-48.
        units: which queries belong together, and the padding.
        density: no unit gets more than `1 / density` of the mass.
    """
    weights = weigh(exponents, units)
    masses = project(weights.units, density)
    sizes = np.diff(units.offsets)
    shares = masses[: len(sizes)] / (2 * sizes * weights.units[: len(sizes)])
    coefficients = np.repeat(shares, sizes) * (weights.positive - weights.negative)
    return np.rint(coefficients * 2.0**COEFFICIENT_BITS).astype(np.int64)


def unit_weights(weights: Weights, density: float) -> NDArray[np.int64]:
    """Integer weights from which the unit is drawn: int64[G], within `exp(+-g)` of the projected masses.

    The floor mixes in a little of the uniform distribution: that contracts every ratio between two runs.

    Formal guarantees. No unit is drawn with a probability above `1/density`, exactly. Proof: the weight of unit `g`
    is at least `A min(1, c W_g)` and at most `A` (see `project`; rounding up keeps both), so all weights sum to at
    least `A density`, and with the floor `F` on each of the `G > density` units to at least `(A + F) density`.
    """
    masses = project(weights.units, density)
    return np.ceil(masses * 2.0**WEIGHT_BITS).astype(np.int64) + FLOOR


def action_weights(weights: Weights, units: Units, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Integer weights of the actions inside chosen units, one unit after another: queries, then complements.

    Args:
        weights: of all queries and units.
        units: which queries belong together.
        chosen: the units, int64[c].

    Returns:
        uint64[2 q] for the q queries of the chosen units.
    """
    sizes = units.offsets[chosen + 1] - units.offsets[chosen]
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    queries = np.repeat(units.offsets[chosen], sizes) + within
    scales = np.repeat(weights.units[chosen] * (2.0 * sizes), sizes)
    places = np.repeat(2 * (np.cumsum(sizes) - sizes), sizes) + within
    masses = np.empty(2 * len(queries))
    masses[places] = weights.positive[queries] / scales
    masses[places + np.repeat(sizes, sizes)] = weights.negative[queries] / scales
    return _integer_weights(masses)


def _integer_weights(masses: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.floor(masses * 2.0**WEIGHT_BITS).astype(np.int64) + FLOOR


class DenseMultiplicativeWeights:
    """DMW: multiplicative weights over the actions, played through the projection `Gamma_s`. HRU Algorithm 2.

    The actions are the queries and their complements; the gain of a complement is minus that of its query. The
    unprojected weights `exp(eta * (sum of gains))` are updated, their projection is played ("lazy" projection).

    Regret. Let the gains of every round lie in [-1, 1], P_t be the projected law of round t, and P any law that
    gives no unit more than `1/s`. Then, whatever the gains, even if they depend on P_t,

        sum_t <P_t, g_t> >= sum_t <P, g_t> - KL(P || start) / eta - eta T / 2,
        KL(P || start) <= log(G / s) + log(actions of the largest unit).

    Proof: P_t maximises <P, u> - KL(P || start) / eta over the laws that keep the cap, u being the sum of the
    gains before t (Herbster & Warmuth 2001); call the maximum F(u). By the generalised Pythagorean inequality
    every other such P falls short of it by at least KL(P || P_t) / eta, so F(u + g) - F(u) is at most the
    largest <P, g> - KL(P || P_t) / eta, which is at most log <P_t, exp(eta g)> / eta (Gibbs) and so at most
    <P_t, g> + eta / 2 (Hoeffding's lemma on [-1, 1]). Sum over t. KL: P(a) / start(a) is at most G / s times the
    actions of a's unit. M actions a round drawn from P_t instead of P_t itself: less at most sqrt(2 T ln(1/beta)
    / M) with probability 1 - beta, if g_t does not depend on the draws of round t (Azuma, range 2). This is HRU
    Theorem 2.12 with exact constants, the cap taken per unit, and the dependence that it has to exclude.
    """

    def __init__(self, units: Units, step: int, density: float) -> None:
        """All sums of gains 0. `step`: eta in units of 2^-48 for each whole unit of gain."""
        self._units = units
        self._step = step
        self._density = density
        self.payoffs = np.zeros(int(units.offsets[-1]), dtype=np.int64)

    def gain(self, gains: NDArray[np.int64]) -> None:
        """Add every query's gain in one round, int64[k], in the unit to which `step` refers."""
        self.payoffs += gains

    def weights(self) -> Weights:
        """Return the unprojected weights."""
        return weigh(self.payoffs * self._step, self._units)

    def mixed_action(self) -> NDArray[np.int64]:
        """Return the projected law as signed coefficients of the queries: int64[k], see `mixed_action`."""
        return mixed_action(self.payoffs * self._step, self._units, self._density)

    def draw(self, count: int, stream: KeyedStream) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """`count` actions drawn independently from the projected law: queries, and 1 or, for a complement, -1.

        Exactly from `unit_weights` and then `action_weights`. Draws of a padding unit's constant query are left
        out: it changes nothing.
        """
        weights = self.weights()
        ends = np.cumsum(unit_weights(weights, self._density)).astype(np.uint64)
        points = stream.below_each(np.full(count, ends[-1], dtype=np.uint64))
        drawn = np.searchsorted(ends, points, side="right")
        chosen, which = np.unique(drawn[drawn < len(self._units.offsets) - 1], return_inverse=True)
        starts, sizes = self._units.offsets[chosen], self._units.offsets[chosen + 1] - self._units.offsets[chosen]
        lasts = np.cumsum(2 * sizes)
        # Running sums through all chosen units may pass 2^64; differences inside one unit are right all the same.
        sums = np.cumsum(action_weights(weights, self._units, chosen).astype(np.uint64))
        before = np.concatenate([np.zeros(1, dtype=np.uint64), sums])[lasts - 2 * sizes]
        points = stream.below_each((sums[lasts - 1] - before)[which])
        low, high = (lasts - 2 * sizes)[which], (lasts - 1)[which]
        while bool((low < high).any()):
            middle = (low + high) // 2
            above = sums[middle] - before[which] > points
            low, high = np.where(above, low, middle + 1), np.where(above, middle, high)
        actions = low - (lasts - 2 * sizes)[which]
        complement = actions >= sizes[which]
        return starts[which] + np.where(complement, actions - sizes[which], actions), np.where(complement, -1, 1)
