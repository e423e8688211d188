"""Exact draws from weights: integer weights, and weights exp(phi) that no machine can store.

For exp(phi) a cell is proposed from integers that over-estimate the weights a little, and accepted with the
ratio of the true weight to the integer. The ratio is a number whose bits are worked out only as far as one
coin needs them (von Neumann 1951 for rejection; Knuth & Yao 1976 for coins of any bias), so nothing is
rounded and the law is exact.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from equipoise_server.randomness.exponential import UNIT_BITS, exponential_bits, exponentials
from equipoise_server.randomness.stream import KeyedStream

LARGEST_SIZE = 1 << 26

_MOST_SCALE_BITS = 47
_FARTHEST = np.uint64(64 << UNIT_BITS)
_LAST_COIN = np.uint64(2**64 - 1)
_LEAST_SURE = np.uint64(4)
_BLOCK = 1 << 14


@dataclass(frozen=True)
class Proposal:
    """Integer weights above the weights exp(phi), on one public scale.

    Cell i has the true weight t_i = 2^scale_bits * exp(-deficits[i] * 2^-48), its deficit being the largest
    exponent less its own, and `weights[i]` - 3 < t_i < `weights[i]`, with 2 <= `weights[i]`. The sum is below
    2^63.
    """

    deficits: NDArray[np.uint64]
    weights: NDArray[np.uint64]
    scale_bits: int

    @classmethod
    def above(cls, exponents: NDArray[np.int64]) -> Proposal:
        """The proposal for phi = exponents * 2^-48. Any int64 values; 1 to 2^26 of them, else ValueError.

        Proof of the bounds: with E the double for exp(-deficit), |E 2^scale - t| <= 2^-48 t <= 1/2 since
        scale <= 47, so floor(E 2^scale) + 2 lies in (t + 1/2, t + 5/2]. Deficits beyond 64 nats are cut to
        64: then t and E 2^scale are both below 1, and the weight is 2. Sum: m (2^scale + 3) < 2^63, as m <
        2^(62 - scale).
        """
        size = exponents.size
        if not 1 <= size <= LARGEST_SIZE:
            raise ValueError(f"exponents: {size} of them, not 1 to {LARGEST_SIZE}")
        # Differences may exceed int64 but not uint64, where subtraction wraps to the right value.
        deficits = exponents.max().astype(np.uint64) - exponents.astype(np.uint64)
        scale_bits = min(_MOST_SCALE_BITS, 62 - size.bit_length())
        scale = float(1 << scale_bits)
        weights = np.empty(size, dtype=np.uint64)
        for start in range(0, size, _BLOCK):
            near = np.minimum(deficits[start : start + _BLOCK], _FARTHEST).astype(np.int64)
            # A product with a power of two and the cast of a double below 2^53 are exact.
            weights[start : start + _BLOCK] = (exponentials(-near) * scale).astype(np.uint64)
        weights += np.uint64(2)
        return cls(deficits, weights, scale_bits)

    def accepted(self, cells: NDArray[np.int64], stream: KeyedStream) -> NDArray[np.bool_]:
        """For each proposed cell, true with probability exactly t_i / weights[i], independently. Same shape."""
        coins = stream.words(cells.size)
        weights = self.weights[cells]
        # The coin V lies in [v, v + 1) / 2^64 and t > w - 3, so (v + 1) w <= 2^64 (w - 3) is enough to
        # accept. With c = floor((2^64 - 1) / w) + 1 >= 2^64 / w, that follows from v + 1 <= 2^64 - 3 c; w >=
        # 4 keeps 3 c in range.
        share = _LAST_COIN // np.maximum(weights, _LEAST_SURE) + np.uint64(1)
        sure = (weights >= _LEAST_SURE) & (coins <= _LAST_COIN - np.uint64(3) * share)
        for place in np.flatnonzero(~sure).tolist():
            cell = int(cells[place])
            sure[place] = self._accepts(cell, int(coins[place]), stream)
        return sure

    def _accepts(self, cell: int, coin: int, stream: KeyedStream) -> bool:
        """Whether the coin whose first 64 bits are given lies below t / weight; reads 128 bits more until sure."""
        deficit, weight = int(self.deficits[cell]), int(self.weights[cell])
        bits = 64
        while True:
            coin = coin << 128 | stream.below(1 << 128)
            bits += 128
            ratio = exponential_bits(deficit, bits)
            if (coin + 1) * weight <= (ratio - 1) << self.scale_bits:
                return True
            if coin * weight >= (ratio + 2) << self.scale_bits:
                return False

    def law(self, bits: int = 192) -> tuple[Fraction, ...]:
        """The probability of each cell, to a total variation of 3 m / 2^bits: what exact enumerations start from.

        Sampling itself uses no such number. Cell i is proposed and kept with probability proportional to
        weights[i] * (t_i / weights[i]), so the law is t_i over their sum.
        """
        ratios = [exponential_bits(deficit, bits) for deficit in self.deficits.tolist()]
        total = sum(ratios)
        return tuple(Fraction(ratio, total) for ratio in ratios)


def draw_exponential(exponents: NDArray[np.int64], count: int, stream: KeyedStream) -> NDArray[np.int64]:
    """`count` independent cells, i with probability exactly proportional to exp(exponents[i] * 2^-48).

    Shape (count,). `exponents` may hold any int64 values (differences up to 2^16 nats), 1 to 2^26 of them;
    ValueError otherwise or for a negative count. There is no bias at all, given ideal words: the proposal is
    exact from integers and the acceptance is exact. A proposal is refused with probability below 3 m /
    2^scale_bits <= 2^-7.
    """
    if count < 0:
        raise ValueError(f"count: {count} is negative")
    proposal = Proposal.above(exponents)
    ends = np.cumsum(proposal.weights, dtype=np.uint64)
    drawn: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    missing = count
    while missing:
        # Never more proposals than draws missing, so that whatever is accepted is used, in order.
        cells = _cells_at(ends, missing, stream)
        kept = cells[proposal.accepted(cells, stream)]
        drawn.append(kept)
        missing -= kept.size
    return np.concatenate(drawn)


def draw_weighted(weights: Sequence[int] | NDArray[np.uint64], stream: KeyedStream) -> int:
    """One index, i with probability exactly weights[i] / sum. See `draw_weighted_many`."""
    return int(draw_weighted_many(weights, 1, stream)[0])


def draw_weighted_many(
    weights: Sequence[int] | NDArray[np.uint64], count: int, stream: KeyedStream
) -> NDArray[np.int64]:
    """`count` independent indices, i with probability exactly weights[i] / sum; shape (count,).

    Weights are non-negative integers of any size with a positive sum, else ValueError. An array of uint64
    whose sum is below 2^63 is drawn from without leaving numpy, with other words than the same numbers in a
    list.
    """
    if count < 0:
        raise ValueError(f"count: {count} is negative")
    if isinstance(weights, np.ndarray):
        if weights.dtype != np.uint64:
            raise ValueError(f"weights: an array of {weights.dtype}, not of uint64")
        # Sums of the upper halves are below 2^32 each, so this bound is computed without overflow.
        upper = int((weights >> np.uint64(32)).sum(dtype=np.uint64))
        if weights.size > 0 and (upper + weights.size) < 1 << 31:
            ends = np.cumsum(weights, dtype=np.uint64)
            if int(ends[-1]) == 0:
                raise ValueError("weights: their sum is 0")
            return _cells_at(ends, count, stream)
        weights = weights.tolist()
    if not weights or min(weights) < 0:
        raise ValueError("weights: none, or a negative one")
    sums = list(accumulate(weights))
    if sums[-1] == 0:
        raise ValueError("weights: their sum is 0")
    return np.array([bisect_right(sums, stream.below(sums[-1])) for _ in range(count)], dtype=np.int64)


def _cells_at(ends: NDArray[np.uint64], count: int, stream: KeyedStream) -> NDArray[np.int64]:
    """`count` indices with the probabilities that the cumulative sums `ends` give."""
    points = stream.below_each(np.full(count, ends[-1], dtype=np.uint64))
    return np.searchsorted(ends, points, side="right").astype(np.int64)
