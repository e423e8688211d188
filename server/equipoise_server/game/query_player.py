"""The query player: dense multiplicative weights, Bregman-projected so that no unit holds more than 1/s.

HRU Algorithm 2 (DMW) with the cap taken per unit and the sign of the payoff turned (HRU's printed sign lets the
play diverge). The actions are every query and its complement; the payoff of `not q` is minus that of `q`, so
one integer a query is the whole state. Plain elementwise arithmetic, exactly rounded sums (`math.fsum`) and
one sequential sum make every result the same bits on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting import COEFFICIENT_BITS, DRAW_BITS
from equipoise_server.randomness.exponential import exponentials

WEIGHT_BITS = 60
FLOOR = 1 << (DRAW_BITS + 1)  # mixes every draw with a little of the uniform one: weights keep 30 good bits


@dataclass(frozen=True)
class Units:
    """Which queries belong to which unit: unit `g` holds queries `offsets[g]:offsets[g+1]`.

    `padding` more units hold only the constant query: public places that nobody filled.
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
    """The query player's weights. `exponents`: int64[k], `eta_Q u` in units of 2^-48."""
    positive, negative = exponentials(exponents), exponentials(-exponents)
    both = positive + negative
    sizes = np.diff(units.offsets)
    means = np.ones(units.count)  # a padding unit's query is always answered right: its weight stays 1
    single = np.flatnonzero(sizes == 1)
    means[single] = both[units.offsets[single]] / 2
    for unit in np.flatnonzero(sizes != 1):
        start, stop = units.offsets[unit], units.offsets[unit + 1]
        means[unit] = math.fsum(both[start:stop].tolist()) / float(2 * (stop - start))
    return Weights(positive, negative, means)


def project(weights: NDArray[np.float64], density: float) -> NDArray[np.float64]:
    """The Bregman projection `Gamma_s`: masses `min(1, c W_g) / s` with `c` such that they sum to 1.

    `weights`: float64[G], positive, all finite; `1 <= density < G`. No mass exceeds `1/density`.
    (HRU Definition 3.1; Herbster & Warmuth 2001 for the projection.)
    """
    ascending = np.sort(weights)
    below = np.add.accumulate(ascending)[::-1]  # below[m]: all but the m largest; sequential, so reproducible
    capped = np.arange(min(math.ceil(density), len(weights)))
    scales = (density - capped) / below[capped]
    fits = scales * ascending[::-1][capped] <= 1
    first = int(np.argmax(fits)) if bool(fits.any()) else len(capped) - 1
    masses: NDArray[np.float64] = np.minimum(1.0, scales[first] * weights) / density
    return masses


def mixed_action(exponents: NDArray[np.int64], units: Units, density: float) -> NDArray[np.int64]:
    """The player's mixed action as signed coefficients of the queries: int64[k] in units of 2^-44.

    `sum_a P(a) a(x)` is `sum_q (P(q) - P(not q)) q(x)` plus a constant, which the data player does not feel.
    """
    weights = weigh(exponents, units)
    masses = project(weights.units, density)
    sizes = np.diff(units.offsets)
    shares = masses[: len(sizes)] / (2 * sizes * weights.units[: len(sizes)])
    coefficients = np.repeat(shares, sizes) * (weights.positive - weights.negative)
    return np.rint(coefficients * 2.0**COEFFICIENT_BITS).astype(np.int64)


def unit_weights(weights: Weights, density: float) -> NDArray[np.int64]:
    """Integer weights from which the unit is drawn: int64[G], within `exp(+-g)` of the projected masses.

    The floor mixes in a little of the uniform distribution: that contracts every ratio between two runs,
    and keeps the cap, as the uniform mass `1/G` is below `1/density`.
    """
    return _integer_weights(project(weights.units, density))


def action_weights(weights: Weights, units: Units, unit: int) -> NDArray[np.int64]:
    """Integer weights of the actions inside a drawn unit: its queries, then their complements."""
    start, stop = units.offsets[unit], units.offsets[unit + 1]
    inside = np.concatenate([weights.positive[start:stop], weights.negative[start:stop]])
    return _integer_weights(inside / (weights.units[unit] * float(2 * (stop - start))))


def _integer_weights(masses: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.floor(masses * 2.0**WEIGHT_BITS).astype(np.int64) + FLOOR
