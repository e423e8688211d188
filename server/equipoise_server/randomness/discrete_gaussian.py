"""Integer noise with the discrete Gaussian law, drawn exactly.

The discrete Gaussian law of variance parameter v gives the integer z a probability proportional to exp(-z^2 / 2v)
(Canonne, Kamath & Steinke 2020). They reject from a discrete Laplace law; here the proposal is coarser, so that
it needs no exponential at all: |z| lies in block k of `width` integers with probability 2^-(k+1), uniformly inside
it. As `width`^2 >= 2 v log 2, the ratio 2^k exp(-z^2 / 2v) never exceeds 1, and a coin of that very bias decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise_server.randomness.exponential import MAX_NATS, UNIT_BITS, exponentials, precise
from equipoise_server.randomness.stream import KeyedStream

MIN_VARIANCE = Fraction(1, 10**6)
MAX_VARIANCE = Fraction(2**80)

_TWICE_LOG_2 = Fraction(1_386_294_361_120, 10**12)  # above 2 log 2 = 1.38629436111989...
_PI = Decimal("3.14159265358979323846")  # cut, so below pi
_DIGITS = 60
_DOUBLE_DIGITS = 20  # more than a double holds
_UP = Decimal("1e-40")  # far above what any computation with 60 digits here errs
_SURE = 2.0**-40
_MAX_LAW = 1 << 16


@dataclass(frozen=True)
class DiscreteGaussian:
    """The discrete Gaussian law with P(z) proportional to exp(-z^2 / (2 variance)), for an exact rational variance.

    `variance` is the continuous law's; the drawn one's is below it, by less than 10^-6 from variance 1 on. It lies
    between 10^-6 and 2^80, else ValueError.

    Formal guarantees, for ideal words: the law is exact, so `truncation_delta()` is 0; on integers that move by a
    vector of squared L2 norm d the noise costs d / (2 variance) in zCDP (Canonne, Kamath & Steinke 2020, Theorem 4
    and its proof coordinate by coordinate; `accounting.gaussian_rho`). Work depends on the noise (a proposal is
    kept with probability 0.53, or 1/4 for the smallest variances), never on what it is added to.
    """

    variance: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.variance, Fraction):
            raise ValueError(f"variance: {self.variance!r} is not a Fraction")
        if not MIN_VARIANCE <= self.variance <= MAX_VARIANCE:
            raise ValueError(f"variance: {self.variance} is not between 10^-6 and 2^80")

    @cached_property
    def width(self) -> int:
        """Integers in a block: the fewest w with w^2 >= 2 variance log 2 (its logarithm rounded up)."""
        return math.isqrt(math.ceil(_TWICE_LOG_2 * self.variance) - 1) + 1

    def draw(self, count: int, stream: KeyedStream) -> NDArray[np.int64]:
        """`count` independent integers with this law; shape (count,). Raises ValueError for a negative count.

        In each pass as many are proposed as are missing, so that whatever is kept is used, in order.
        """
        if count < 0:
            raise ValueError(f"count: {count} is negative")
        drawn = [np.empty(0, dtype=np.int64)]
        missing = count
        while missing:
            words = stream.words(missing)
            blocks = _trailing_zeros(words >> np.uint64(1))
            for place in np.flatnonzero(blocks >= 63).tolist():
                blocks[place] = 63 + _further_zeros(stream)
            within = stream.below_each(np.full(missing, self.width, dtype=np.uint64)).astype(np.int64)
            sizes = blocks * self.width + within
            negative = words & np.uint64(1) == 1
            # Zero has one sign only: proposed with the other one, it is refused.
            kept = self._accepted(blocks, sizes, stream) & ~(negative & (sizes == 0))
            values = np.where(negative, -sizes, sizes)[kept]
            drawn.append(values)
            missing -= values.size
        return np.concatenate(drawn)

    def _accepted(
        self, blocks: NDArray[np.int64], sizes: NDArray[np.int64], stream: KeyedStream
    ) -> NDArray[np.bool_]:
        """For each proposal, true with probability exactly 2^block exp(-size^2 / 2 variance), independently.

        Doubles settle only what is certain. The exponent is wrong by less than 5 * 2^-53 of itself and 2^-48
        nats, `exponentials` by 2^-49, so 2^64 times the bias is known to 2^-41 of itself for up to 700 nats; above
        them it is only known to be below what 700 nats give, and below 1.
        """
        coins = stream.words(sizes.size)
        reals = sizes.astype(np.float64)
        nats = np.minimum(reals * reals / float(2 * self.variance), float(MAX_NATS))
        # Products with powers of two are exact.
        bias = np.ldexp(exponentials(-(nats * 2.0**UNIT_BITS).astype(np.int64)), np.minimum(blocks, 63) + 64)
        tossed = coins.astype(np.float64)
        kept: NDArray[np.bool_] = tossed < bias * (1 - _SURE) - 2
        open_ = ~kept & ((tossed <= bias * (1 + _SURE) + 2) | (blocks > 63))
        for place in np.flatnonzero(open_).tolist():
            kept[place] = self._keeps(int(blocks[place]), int(sizes[place]), int(coins[place]), stream)
        return kept

    def _keeps(self, block: int, size: int, coin: int, stream: KeyedStream) -> bool:
        """Whether the coin whose first 64 bits are given falls below the bias; reads as many again until sure."""
        if size == 0:
            return True
        bits = 64
        while True:
            coin = coin << bits | stream.below(1 << bits)
            bits *= 2
            scaled = self._density(size, bits)
            if coin + 1 <= (scaled - 1) << block:
                return True
            if coin >= (scaled + 2) << block:
                return False

    def _density(self, size: int, bits: int) -> int:
        """Return an integer b with b - 1 < 2^bits exp(-size^2 / 2 variance) < b + 2.

        With x nats and d digits the quotient, the exponential and the product are wrong by less than x 10^(1-d),
        10^(1-d) and 10^(1-d) of the whole; as x exp(-x) < 1, their sum is below 2^bits 3 10^(1-d) < 10^-30.
        """
        nats = Fraction(size * size) / (2 * self.variance)
        context = precise(bits * 302 // 1000 + 40)
        exponent = context.divide(Decimal(-nats.numerator), Decimal(nats.denominator))
        return int(context.multiply(context.exp(exponent), Decimal(1 << bits)))

    def truncation_delta(self) -> Fraction:
        """Return the total variation of the drawn law from the ideal one: none, every integer may be drawn."""
        return Fraction(0)

    def quantile(self, probability: Fraction | float) -> int:
        """Return a z >= 0 for which P(Z > z) <= probability is proven; ValueError unless 0 < probability < 1.

        The smallest one by the bound of `_beyond`, which exceeds the true tail by a part of about variance / z^2.
        """
        allowed = Fraction(probability)
        if not 0 < allowed < 1:
            raise ValueError(f"probability: {probability} is not between 0 and 1")
        context = precise(_DIGITS)
        wanted = context.divide(Decimal(allowed.numerator), Decimal(allowed.denominator))
        wanted = context.multiply(wanted, context.subtract(Decimal(1), _UP))
        if wanted >= Decimal("0.5"):
            return 0  # P(Z > 0) = (1 - P(Z = 0)) / 2
        # Doubles only say where to look first: what is returned is decided in decimals.
        logarithm = float(precise(_DOUBLE_DIGITS).ln(wanted))
        nearly = _least(lambda size: self._nearly_beyond(size + 1) <= logarithm, self.width)
        return _least(lambda size: self._beyond(size + 1) <= wanted, nearly)

    def _beyond(self, size: int) -> Decimal:
        """At least P(Z >= size), for size >= 1; it falls as `size` grows.

        From `size` on the masses fall by factors of at most r = exp(-(2 size + 1) / 2v), so they add up to at most
        exp(-size^2 / 2v) / (1 - r); and all masses add up to at least 1 and to at least sqrt(2 pi v) (Poisson).
        """
        context = precise(_DIGITS)
        twice = Fraction(2 * self.variance)

        def falling(amount: int) -> Decimal:
            exponent = Fraction(-amount) / twice
            return context.exp(context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator)))

        lower = precise(_DIGITS)
        lower.rounding = ROUND_FLOOR
        spread = lower.divide(Decimal(twice.numerator), Decimal(twice.denominator))
        whole = max(Decimal(1), lower.sqrt(lower.multiply(_PI, spread)))
        rest = context.subtract(Decimal(1), falling(2 * size + 1))
        bound = context.divide(falling(size * size), context.multiply(rest, whole))
        return context.multiply(bound, context.add(Decimal(1), _UP))

    def _nearly_beyond(self, size: int) -> float:
        """Return the logarithm of `_beyond`, as doubles have it."""
        twice = float(2 * self.variance)
        rest = -math.expm1(-(2 * size + 1) / twice)
        return -size * size / twice - math.log(rest) - 0.5 * math.log(max(1.0, math.pi * twice))

    def law(self, bits: int = 192) -> dict[int, Fraction]:
        """The probability of each integer to a total variation of 2^(20 - bits): what enumerations start from.

        Sampling itself uses no such number. Integers beyond which less than 2^-bits lies are left out. Raises
        ValueError where more than 2^17 integers would be listed.
        """
        reach = self.quantile(Fraction(1, 1 << bits)) + 1
        if reach > _MAX_LAW:
            raise ValueError(f"variance: {self.variance} is too large to enumerate")
        masses = [self._density(size, bits) for size in range(reach + 1)]
        total = masses[0] + 2 * sum(masses[1:])
        return {z: Fraction(masses[abs(z)], total) for z in range(-reach, reach + 1)}


def _least(holds: Callable[[int], bool], start: int) -> int:
    """Return the least z >= 0 for which `holds(z)`, which holds from there on. Looks near `start` first."""
    low, high, step = start - 1, start, 1
    while low >= 0 and holds(low):
        low, high, step = max(-1, low - step), low, 2 * step
    while not holds(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _trailing_zeros(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return how many zero bits each word ends in; 64 for the word 0."""
    lowest = words & (~words + np.uint64(1))
    return np.bitwise_count(lowest - np.uint64(1)).astype(np.int64)


def _further_zeros(stream: KeyedStream) -> int:
    """Return how many zero bits come before the first one in what the stream holds next, low bits first."""
    zeros = 0
    while True:
        word = stream.below(1 << 64)
        if word:
            return zeros + (word & -word).bit_length() - 1
        zeros += 64
