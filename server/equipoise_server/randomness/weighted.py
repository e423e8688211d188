"""Exact draws from weights exp(phi), which no machine can store.

A cell is proposed from integers that over-estimate the weights, and accepted with the ratio of the
true weight to the integer. The ratio is a number whose bits are worked out only as far as one coin needs them
(von Neumann 1951 for rejection; Knuth & Yao 1976 for coins of any bias), so nothing is rounded and the law is
exact. It stays exact when phi has moved since the integers were made, as long as they still over-estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from equipoise_server.randomness.exponential import MAX_NATS, UNIT_BITS, exponential_bits, exponentials
from equipoise_server.randomness.stream import KeyedStream

MAX_SIZE = 1 << 26

_MAX_SCALE_BITS = 47
_STEP_BITS = 10  # weights are held for steps of 2^-10 nats: a thousandth of the proposals is refused for that
_LAST_STEP = 64 << _STEP_BITS
_BLOCK = 1 << 15  # cells whose temporaries stay in a core's cache
_MAX_PROPOSALS = 1 << 16  # at a time
_COIN_BITS = 53
_SURE = 1 + 2.0**-46  # wider than what three roundings and the 2^-48 of an exponential can move a product


def _same(exponents: NDArray[np.int64]) -> NDArray[np.int64]:
    return exponents


@dataclass(frozen=True)
class Proposal:
    """Integer weights above the weights exp(phi), on one scale, as running sums.

    With t_i = 2^scale_bits * exp((phi_i - top) * 2^-48), `top` being the largest phi, the weight of cell i is
    w_i = `ends[i]` - `ends[i - 1]`, and t_i + 1/2 < w_i < t_i exp(2^-10) + 5/2. The sum is below 2^63.
    """

    ends: NDArray[np.uint64]
    top: int
    scale_bits: int

    @classmethod
    def above(
        cls, scores: NDArray[np.int64], exponents: Callable[[NDArray[np.int64]], NDArray[np.int64]] = _same
    ) -> Proposal:
        """The proposal for phi = exponents(scores), in units of 2^-48 nats; 1 to 2^26 cells, else ValueError.

        `exponents` is elementwise and never decreases; it is applied block by block, so that only the running
        sums, 8 bytes a cell, are stored. Exponents may be any int64 values.

        Proof of the bounds: the deficit top - phi is rounded down to a multiple d of 2^-10 nats, which makes
        its weight larger by a factor below exp(2^-10). With E the double for exp(-d), |E 2^scale - exp(-d)
        2^scale| <= 2^-48 2^47 = 1/2, so floor(E 2^scale) + 2 lies in (exp(-d) 2^scale + 1/2, ... + 5/2].
        Deficits beyond 64 nats are cut ("clip") to 64: then t_i and E 2^scale are below 1, and the weight is 2.
        Sum: m (2^scale + 3) < 2^63, as m < 2^(62 - scale).
        """
        size = scores.size
        if not 1 <= size <= MAX_SIZE:
            raise ValueError(f"exponents: {size} of them, not 1 to {MAX_SIZE}")
        scale_bits = min(_MAX_SCALE_BITS, 62 - size.bit_length())
        weights = _weights_of_steps(scale_bits)
        top = exponents(scores.max(keepdims=True))
        ends = np.empty(size, dtype=np.uint64)
        below = np.uint64(0)
        for start in range(0, size, _BLOCK):
            block = exponents(scores[start : start + _BLOCK])
            # Differences may exceed int64 but not uint64, where subtraction wraps to the right value.
            steps_below = (top.view(np.uint64) - block.view(np.uint64)) >> np.uint64(UNIT_BITS - _STEP_BITS)
            part = ends[start : start + _BLOCK]
            np.cumsum(weights.take(steps_below.view(np.int64), mode="clip"), out=part)
            part += below
            below = part[-1]
        return cls(ends, int(top[0]), scale_bits)

    def weights(self, cells: NDArray[np.int64]) -> NDArray[np.uint64]:
        """w_i of some cells. Same shape."""
        before = np.where(cells > 0, self.ends[cells - 1], np.uint64(0))
        return self.ends[cells] - before

    def draw(
        self,
        count: int,
        exponents_of: Callable[[NDArray[np.int64]], NDArray[np.int64]],
        growth: int,
        stream: KeyedStream,
    ) -> NDArray[np.int64]:
        """`count` independent cells, i with probability exactly proportional to exp(phi'_i 2^-48); shape (count,).

        phi' may differ from the phi of which this proposal was made: `exponents_of` gives phi' for an array of
        cells, and it is promised that phi'_i <= phi_i + growth for every cell, `growth` >= 0. A broken promise
        raises ValueError where it shows.

        Proof: cell i is proposed with probability w_i / sum(w) and kept with probability t'_i / w_i for t'_i =
        2^scale exp((phi'_i - top - growth) 2^-48) <= t_i < w_i. So a kept cell is i with probability
        proportional to w_i t'_i / w_i, that is to exp(phi'_i 2^-48): neither w nor growth is left in it, they
        only decide how many proposals are refused. Proposals are made independently in batches, whose size
        depends on earlier batches only; the first `count` kept ones of that sequence are independent draws.
        """
        drawn: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        missing, proposed = count, 0
        while missing > 0:
            # As many as the batches before suggest are needed.
            batch = -(-missing * (proposed + 1) // (count - missing + 1))
            cells = _cells_at(self.ends, min(batch, _MAX_PROPOSALS), stream)
            kept = cells[self.accepted(cells, exponents_of(cells), growth, stream)][:missing]
            drawn.append(kept)
            missing -= kept.size
            proposed += cells.size
        return np.concatenate(drawn)

    def accepted(
        self, cells: NDArray[np.int64], exponents: NDArray[np.int64], growth: int, stream: KeyedStream
    ) -> NDArray[np.bool_]:
        """For each proposed cell, true with probability exactly t'_i / w_i (see `draw`), independently.

        `exponents`: phi' of the cells. Same shape.

        A coin V in [0, 1) accepts where V w < t'. Its first 53 bits c say V in [c, c + 1) 2^-53, and t' is
        known as a double to a relative 2^-48, so one of c w and (c + 1) w is nearly always far enough from
        2^53 t'. Where it is not, the exact comparison reads further bits. Deficits beyond 700 nats are cut to
        700, which only makes the double larger: then it never accepts, and refuses unless c is 0.
        """
        lifted = self.top + growth
        if exponents.size and not int(exponents.max()) <= lifted < int(exponents.min()) + (1 << 64):
            raise ValueError("growth: an exponent has grown by more, or lies more than 2^16 nats below the largest")
        coins = stream.words(cells.size)
        weights = self.weights(cells)
        deficits = np.uint64(lifted % (1 << 64)) - exponents.astype(np.uint64)
        near = np.minimum(deficits, np.uint64(MAX_NATS << UNIT_BITS)).astype(np.int64)
        true = exponentials(-near) * float(1 << self.scale_bits)
        above = weights.astype(np.float64)
        if bool((true > above * _SURE).any()):
            raise ValueError("growth: an exponent has grown by more")
        true *= 2.0**_COIN_BITS
        first = (coins >> np.uint64(64 - _COIN_BITS)).astype(np.float64)
        accepted: NDArray[np.bool_] = (first + 1) * above * _SURE <= true
        open_ = ~accepted & (first * above <= true * _SURE)
        for place in np.flatnonzero(open_).tolist():
            accepted[place] = self._accepts(int(deficits[place]), int(weights[place]), int(coins[place]), stream)
        return accepted

    def _accepts(self, deficit: int, weight: int, coin: int, stream: KeyedStream) -> bool:
        """Whether the coin whose first 64 bits are given lies below t' / weight; reads 128 bits more until sure."""
        bits = 64
        while True:
            coin = coin << 128 | stream.below(1 << 128)
            bits += 128
            ratio = exponential_bits(deficit, bits)
            if (coin + 1) * weight <= (ratio - 1) << self.scale_bits:
                return True
            if coin * weight >= (ratio + 2) << self.scale_bits:
                return False


@cache
def _weights_of_steps(scale_bits: int) -> NDArray[np.uint64]:
    """floor(2^scale_bits exp(-j 2^-10)) + 2, but for the errors of a double (see `Proposal.above`), j = 0..2^16."""
    steps = -np.arange(_LAST_STEP + 1, dtype=np.int64) << (UNIT_BITS - _STEP_BITS)
    # A product with a power of two and the cast of a double below 2^53 are exact.
    weights = (exponentials(steps) * float(1 << scale_bits)).astype(np.uint64) + np.uint64(2)
    weights.setflags(write=False)
    return weights


def draw_exponential(exponents: NDArray[np.int64], count: int, stream: KeyedStream) -> NDArray[np.int64]:
    """`count` independent cells, i with probability exactly proportional to exp(exponents[i] * 2^-48).

    Shape (count,). `exponents` may hold any int64 values (differences up to 2^16 nats), 1 to 2^26 of them;
    ValueError otherwise or for a negative count. There is no bias at all, given ideal words: the proposal is
    exact from integers and the acceptance is exact (`Proposal.draw`). A proposal is refused with probability
    below 2^-10 + 3 m / 2^scale_bits <= 2^-10 + 2^-7.
    """
    if count < 0:
        raise ValueError(f"count: {count} is negative")
    return Proposal.above(exponents).draw(count, lambda cells: exponents[cells], 0, stream)


def _cells_at(ends: NDArray[np.uint64], count: int, stream: KeyedStream) -> NDArray[np.int64]:
    """`count` indices with the probabilities that the cumulative sums `ends` give."""
    points = stream.below_each(np.full(count, ends[-1], dtype=np.uint64))
    return np.searchsorted(ends, points, side="right").astype(np.int64)
