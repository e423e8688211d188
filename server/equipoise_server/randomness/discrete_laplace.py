"""Integer noise with the discrete Laplace law, from coins with integer thresholds.

The discrete Laplace law of rate r gives the integer z a probability proportional to exp(-r |z|) (Ghosh,
Roughgarden & Sundararajan 2009). It is the law of the difference of two independent geometric numbers, P(g) =
(1 - p) p^g with p = exp(-r), and the binary digits of a geometric number are independent (Balcer & Vadhan
2018): digit j is 1 with probability p^(2^j) / (1 + p^(2^j)) = 1 / (1 + exp(r 2^j)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from equipoise_server.randomness.exponential import precise
from equipoise_server.randomness.stream import KeyedStream

MIN_RATE = Fraction(1, 10**15)
THRESHOLD_BITS = 128

_CUT_NATS = 89  # above 128 log 2 = 88.72: what lies beyond the last digit has probability below 2^-128
_MAX_NATS = Decimal(1000)
_HALF_MASK = (1 << 64) - 1
_DIGITS = 120
_MIN_DOUBLE = 1e-300  # from which on doubles lose no digits
_WORDS_AT_ONCE = 1 << 17


@dataclass(frozen=True)
class DiscreteLaplace:
    """The discrete Laplace law with P(z) proportional to exp(-rate * |z|), for an exact rational rate.

    To hide an integer of sensitivity s at epsilon e, the rate is e / s. Rates below 10^-15 are refused with
    ValueError (their digits would not fit an int64).

    Formal guarantees, for ideal words: every draw costs the same number of words and operations; |z| <
    2^digits; the law of one draw differs from the ideal one by at most `truncation_delta()` in total
    variation, so a mechanism that is (e, d)-private with ideal noise in c draws is (e, d + (1 + exp(e)) c
    truncation_delta())-private with these. `tail` and `quantile` hold for the law that is really drawn.
    """

    rate: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.rate, Fraction):
            raise ValueError(f"rate: {self.rate!r} is not a Fraction")
        if self.rate < MIN_RATE:
            raise ValueError(f"rate: {self.rate} is below 10^-15")

    @cached_property
    def digits(self) -> int:
        """Binary digits of each geometric number: the fewest, at least 1, with rate * 2^digits >= 89."""
        least = math.ceil(_CUT_NATS / self.rate)
        return max(1, (least - 1).bit_length())

    @cached_property
    def thresholds(self) -> tuple[int, ...]:
        """For digit j the integer t nearest to 2^128 / (1 + exp(rate 2^j)): digit j is 1 iff 128 bits are below t.

        The exponent is below 89 for all digits but a single one, for which it is cut to 1,000 (t is 0 from
        there on). At 120 places it is wrong by less than 10^-116 and the scaled quotient by less than 10^-76,
        so the integer is within 1/2 + 10^-76 < 1 of the ideal threshold.
        """
        return _thresholds(self.rate, self.digits)

    def draw(self, count: int, stream: KeyedStream) -> NDArray[np.int64]:
        """`count` independent integers with this law; shape (count,). Raises ValueError for a negative count.

        A value reads 4 * digits words: for each of its two geometric numbers and each digit from the lowest,
        the upper and the lower half of a 128-bit number. So drawing a, then b, gives what drawing a + b
        gives.
        """
        if count < 0:
            raise ValueError(f"count: {count} is negative")
        upper = np.array([threshold >> 64 for threshold in self.thresholds], dtype=np.uint64)
        lower = np.array([threshold & _HALF_MASK for threshold in self.thresholds], dtype=np.uint64)
        places = np.left_shift(np.int64(1), np.arange(self.digits, dtype=np.int64))
        values = np.empty(count, dtype=np.int64)
        block = max(1, _WORDS_AT_ONCE // (4 * self.digits))
        for start in range(0, count, block):
            size = min(block, count - start)
            words = stream.words(4 * self.digits * size).reshape(size, 2, self.digits, 2)
            high, low = words[..., 0], words[..., 1]
            ones = (high < upper) | ((high == upper) & (low < lower))
            # Integer sums below 2^62: exact in any order.
            geometric = np.where(ones, places, np.int64(0)).sum(axis=2, dtype=np.int64)
            values[start : start + size] = geometric[:, 0] - geometric[:, 1]
        return values

    @property
    def variance(self) -> Fraction:
        """The variance of the ideal law to 100 digits: 2 p / (1 - p)^2 where p = exp(-rate)."""
        return _variance(self.rate)

    def truncation_delta(self) -> Fraction:
        """Return an upper bound on the total variation of the drawn law from the ideal one: (2 digits + 2) / 2^128.

        Two geometric numbers; each has `digits` coins whose probability is off by less than 2^-128, and
        misses the digits from `digits` on, one of which is 1 with probability p^(2^digits) <= exp(-89) <
        2^-128.
        """
        return Fraction(2 * self.digits + 2, 1 << THRESHOLD_BITS)

    def tail(self, size: int) -> float:
        """An upper bound on P(|Z| >= size), rounded upwards: 2 p^size / (1 + p) + truncation_delta(), at most 1."""
        if size <= 0:
            return 1.0
        context = precise(_DIGITS)
        slack = self.truncation_delta()
        beyond = context.multiply(Decimal(2), self._beyond(size))
        beyond = context.add(beyond, context.divide(Decimal(slack.numerator), Decimal(slack.denominator)))
        # One step up covers both the rounding to a double and the 10^-100 of the decimal computation.
        return min(1.0, math.nextafter(float(beyond), math.inf))

    def quantile(self, probability: Fraction | float) -> int:
        """The smallest z >= 0 for which P(Z > z) <= probability is proven; ValueError unless 0 < probability < 1.

        P(Z > z) <= p^(z+1) / (1 + p) + truncation_delta(). The logarithms are taken to 120 digits and moved
        up by 10^-90 of their size, so the answer is never too small, and too large by one only within that
        distance of a jump. No draw exceeds 2^digits - 1, which is the answer for probabilities below the
        slack.
        """
        allowed = Fraction(probability)
        if not 0 < allowed < 1:
            raise ValueError(f"probability: {probability} is not between 0 and 1")
        largest = (1 << self.digits) - 1
        remaining = allowed - self.truncation_delta()
        if remaining <= 0:
            return largest
        # Doubles decide where no rounding of theirs could change it: their error is far below a part of 10^-12.
        if remaining > _MIN_DOUBLE and self.rate < _CUT_NATS:
            rate = float(self.rate)
            near = -(math.log(remaining) + math.log1p(math.exp(-rate))) / rate
            if abs(near - round(near)) > (abs(near) + 1 / rate) * 1e-12:
                return min(largest, max(0, math.ceil(near) - 1))
        context = precise(_DIGITS)
        wanted = context.divide(Decimal(remaining.numerator), Decimal(remaining.denominator))
        gain = context.ln(context.multiply(wanted, context.add(Decimal(1), self._power(1))))
        steps = context.divide(
            context.multiply(gain.copy_negate(), Decimal(self.rate.denominator)), Decimal(self.rate.numerator)
        )
        margin = context.multiply(context.add(context.abs(steps), Decimal(1)), Decimal("1e-90"))
        above = int(context.add(steps, margin).to_integral_value(ROUND_CEILING, context))
        return min(largest, max(0, above - 1))

    def law(self) -> dict[int, Fraction]:
        """Return the exact law that `draw` draws from, for enumerations: the probability of each possible integer.

        Raises ValueError for more than 12 digits (rates below about 1/46).
        """
        if self.digits > 12:
            raise ValueError(f"rate: {self.rate} is too small to enumerate")
        whole = 1 << THRESHOLD_BITS
        masses = {0: 1}
        for digit, threshold in enumerate(self.thresholds):
            differ = threshold * (whole - threshold)
            steps = {-(1 << digit): differ, 0: whole * whole - 2 * differ, 1 << digit: differ}
            grown: dict[int, int] = {}
            for value, mass in masses.items():
                for step, factor in steps.items():
                    grown[value + step] = grown.get(value + step, 0) + mass * factor
            masses = grown
        total = whole ** (2 * self.digits)
        return {value: Fraction(mass, total) for value, mass in sorted(masses.items())}

    def _power(self, exponent: int) -> Decimal:
        """p^exponent to a relative error of 10^-100 for exponents of up to 10^17 nats."""
        context = precise(_DIGITS)
        nats = context.divide(Decimal(exponent * self.rate.numerator), Decimal(self.rate.denominator))
        return context.exp(nats.copy_negate())

    def _beyond(self, size: int) -> Decimal:
        """P(Z >= size) of the ideal law, for size >= 1."""
        context = precise(_DIGITS)
        return context.divide(self._power(size), context.add(Decimal(1), self._power(1)))


@lru_cache(maxsize=256)
def _variance(fraction: Fraction) -> Fraction:
    context = precise(_DIGITS)
    chance = context.exp(context.divide(Decimal(-fraction.numerator), Decimal(fraction.denominator)))
    rest = context.subtract(Decimal(1), chance)
    twice = context.multiply(Decimal(2), chance)
    return Fraction(context.divide(twice, context.multiply(rest, rest)))


# Every analyst's repair draws from the same few laws, each with up to sixty exponentials to 120 digits.
@lru_cache(maxsize=256)
def _thresholds(fraction: Fraction, digits: int) -> tuple[int, ...]:
    context = precise(_DIGITS)
    rate = context.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))
    thresholds = []
    for digit in range(digits):
        nats = context.min(context.multiply(rate, Decimal(1 << digit)), _MAX_NATS)
        odds = context.exp(nats)
        ideal = context.divide(Decimal(1 << THRESHOLD_BITS), context.add(odds, Decimal(1)))
        thresholds.append(int(ideal.to_integral_value(ROUND_HALF_EVEN, context)))
    return tuple(thresholds)
