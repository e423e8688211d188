"""Computes the scale of the projection, `c` with `sum_g min(1, c W_g) = s`, exactly and without sorting.

All sums are sums of integers within 2^53, or of Python's, so they depend neither on the order of the weights nor on
threads or the build of numpy, and all comparisons are exact.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

MAX_UNITS = 1 << 26  # so that sums of half significands stay within 2^53

_FRACTION_BITS = 52  # of a double; its exponent field stands above them
_LOW_BITS = 26
_LOW_MASK = (1 << _LOW_BITS) - 1
_FIELDS = 1 << 11
_BIAS = 1023
_LAST_BIT = _BIAS + _FRACTION_BITS  # a double of field e and significand m, leading bit included, is m 2^(e - this)
_BLOCK = 1 << 14  # numbers whose temporaries stay in a core's cache


def cap_scale(weights: NDArray[np.float64], density: float) -> Fraction:
    """Return the number `c` with `sum_g min(1, c W_g) = density`, exactly: a function of the weights as a multiset.

    `weights`: float64[G], positive normal numbers, at most 2^26; `density`: at least 1, below G. Raises
    `ValueError` otherwise.

    One pass gives the number and the exact sum of the weights between any two powers of two, and so between which
    two the threshold `1/c` lies, from which on weights are capped. Among the weights there, Newton's method on the
    concave, increasing, piecewise linear `f(c) = sum_g min(1, c W_g)`: with the units from a threshold on capped,
    the next threshold is `(sum of the others) / (density - number of the capped)`. A tangent lies above `f`, so the
    steps climb towards the solution, capping ever more units, until none is added. In exact arithmetic that is
    reached, and unique: `f` increases strictly until it is `G`.

    Nothing is kept from round to round. Any exact sum needs the one pass, and what a start from the last round's
    threshold could still save is two of the few steps between two powers of two: it was tried, and not measurable.
    """
    if not 1 <= density < len(weights) <= MAX_UNITS:
        raise ValueError(f"density: {density} is not at least 1 and below the {len(weights)} units")
    field, capped, rest = _octave(weights, density)
    threshold = math.ldexp(1.0, field + 1 - _BIAS)
    inside = weights[np.flatnonzero((weights >= threshold / 2) & (weights < threshold))]
    while True:
        inverse = rest / (Fraction(density) - capped)
        added = inside >= _at_least(inverse)
        if not added.any():
            return 1 / inverse
        capped += int(np.count_nonzero(added))
        rest -= Fraction(_significands(inside[added]) << field, 1 << _LAST_BIT)
        inside = inside[~added]


def _octave(weights: NDArray[np.float64], density: float) -> tuple[int, int, Fraction]:
    """Where capping begins: an exponent field `e`, how many weights have a larger one, and the sum of all others.

    With `x` the power of two that starts field `e`, it is the largest field of any weight with `f(1/x) >= density`.
    So every weight of a larger field is capped, and none of a smaller one.
    """
    counts, low, high = np.zeros(_FIELDS, np.int64), np.zeros(_FIELDS), np.zeros(_FIELDS)
    for start in range(0, len(weights), _BLOCK):
        bits = weights[start : start + _BLOCK].view(np.int64)
        fields = bits >> _FRACTION_BITS
        counts += np.bincount(fields, minlength=_FIELDS)
        # At most 2^26 integers below 2^26: exact in doubles, in whatever order they are added.
        low += np.bincount(fields, bits & _LOW_MASK, _FIELDS)
        high += np.bincount(fields, (bits >> _LOW_BITS) & _LOW_MASK, _FIELDS)
    present = np.flatnonzero(counts)[::-1].tolist()
    totals = {e: _joined(int(counts[e]), int(high[e]), int(low[e])) << e for e in present}  # units of 2^-1075
    numerator, denominator = density.as_integer_ratio()
    capped, rest = 0, sum(totals.values())
    for e in present:
        others, still = rest - totals[e], numerator - (capped + int(counts[e])) * denominator
        if others * denominator >= still << (e + _FRACTION_BITS):
            return e, capped, Fraction(rest, 1 << _LAST_BIT)
        capped, rest = capped + int(counts[e]), others
    raise ValueError("weights: all must be positive normal numbers")


def _significands(numbers: NDArray[np.float64]) -> int:
    """Return the sum of numbers between two powers of two, in units of the last bit that each of them has."""
    bits = numbers.view(np.int64)
    low, high = int((bits & _LOW_MASK).sum()), int(((bits >> _LOW_BITS) & _LOW_MASK).sum())
    return _joined(len(numbers), high, low)


def _joined(count: int, high: int, low: int) -> int:
    """The sum of `count` significands from the sums of their halves; the leading bit is not stored in a double."""
    return (((count << _LOW_BITS) + high) << _LOW_BITS) + low


def _at_least(number: Fraction) -> float:
    """Return the smallest double that is not below a positive number."""
    nearest = float(number)
    return nearest if nearest >= number else math.nextafter(nearest, math.inf)
