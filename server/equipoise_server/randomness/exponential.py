"""exp on a fixed grid, the same bits on every machine.

Exponents are integers in units of 2^-48 nats (`UNIT_BITS`). Two forms are offered: doubles with a proven
error, fast enough for every cell of a universe, and integers of any precision for the few decisions that the
doubles leave open. Both rest on `decimal`, whose exp is correctly rounded by specification (General Decimal
Arithmetic 1.70, "exp").
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from functools import cache

import numpy as np
from numpy.typing import NDArray

UNIT_BITS = 48
MAX_NATS = 700

_PART_BITS = 12
_PART_MASK = (1 << _PART_BITS) - 1
_BLOCK = 1 << 14  # elements whose temporaries stay in a core's cache


def precise(digits: int) -> Context:
    """Return a decimal context of `digits` digits whose range no exponent of this package leaves."""
    return Context(
        prec=digits,
        rounding=ROUND_HALF_EVEN,
        Emin=-999_999,
        Emax=999_999,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[InvalidOperation, DivisionByZero, Overflow],
    )


def exponentials(exponents: NDArray[np.int64]) -> NDArray[np.float64]:
    """exp(exponents * 2^-48), elementwise; same shape. Raises ValueError where an exponent exceeds 700 nats.

    The relative error is below 2^-49 (so within the 2^-48 that callers rely on): the exponent is cut into
    whole nats and four parts of 12 bits, five correctly rounded table entries of relative error at most 2^-53
    (1 + 2^-60) are multiplied in a fixed order, and each of the four products adds at most 2^-53, all of them
    normal numbers; (1 + 2^-53 (1 + 2^-60))^9 - 1 < 10 * 2^-53 < 2^-49. exp(0) is exactly 1. Only elementwise
    products of IEEE doubles are used, so the bits do not depend on the machine, the build of numpy or the
    number of threads.

    >>> exponentials(np.array([0, 1 << 48], dtype=np.int64)).tolist()
    [1.0, 2.718281828459045]
    """
    limit = MAX_NATS << UNIT_BITS
    if exponents.size and (int(exponents.min()) < -limit or int(exponents.max()) > limit):
        raise ValueError(f"exponents: one lies outside +-{MAX_NATS} nats")
    whole, parts = _tables()
    source = np.ascontiguousarray(exponents, dtype=np.int64).ravel()
    result = np.empty(source.size, dtype=np.float64)
    for start in range(0, source.size, _BLOCK):
        block = source[start : start + _BLOCK]
        product = whole[(block >> UNIT_BITS) + MAX_NATS]
        for place, table in enumerate(parts, start=1):
            product *= table[(block >> (UNIT_BITS - place * _PART_BITS)) & _PART_MASK]
        result[start : start + _BLOCK] = product
    return result.reshape(exponents.shape)


def exponential_bits(exponent: int, bits: int = 192) -> int:
    """Return an integer b with b - 1 < 2^bits * exp(-exponent * 2^-48) < b + 2, for 0 <= exponent < 2^64.

    Raises ValueError outside that range. It is the floor of a decimal value whose absolute error is below
    10^-8: with d = floor(bits * 0.302) + 10 > log10(2^bits) + 9 digits the exponential (correctly rounded,
    the argument is exact: an integer below 2^64 over 2^48 has at most 68 digits) and its product with 2^bits
    each have a relative error of at most 10^(1-d)/2, and 2^bits * 10^(1-d) < 10^-8 (1 - 2^-8).

    Args:
        exponent: in units of 2^-48 nats.
        bits: of the result's scale.
    """
    if not 0 <= exponent < 1 << 64:
        raise ValueError(f"exponent: {exponent} is outside 0..2^64-1")
    context = precise(max(80, bits * 302 // 1000 + 10))
    nats = context.divide(Decimal(exponent), Decimal(1 << UNIT_BITS))
    # copy_negate, since a unary minus would round to the digits of the caller's own context.
    return int(context.multiply(context.exp(nats.copy_negate()), Decimal(1 << bits)))


@cache
def _tables() -> tuple[NDArray[np.float64], tuple[NDArray[np.float64], ...]]:
    """exp of the whole nats -700..700, and of j * 2^-12, j * 2^-24, j * 2^-36, j * 2^-48 for j = 0..4095."""
    whole = _powers(Decimal(1), -MAX_NATS, 2 * MAX_NATS + 1)
    places = range(_PART_BITS, UNIT_BITS + 1, _PART_BITS)
    steps = (precise(60).divide(Decimal(1), Decimal(1 << place)) for place in places)
    return whole, tuple(_powers(step, 0, 1 << _PART_BITS) for step in steps)


def _powers(step: Decimal, first: int, count: int) -> NDArray[np.float64]:
    """exp((first + j) * step) for j < count, correctly rounded to doubles but for ties within 10^-50."""
    # 60 digits lose at most count * 10^-59 over the chain of products: far below what moves a double.
    context = precise(60)
    factor = context.exp(step)
    value = context.exp(context.multiply(step, Decimal(first)))
    table = np.empty(count, dtype=np.float64)
    for j in range(count):
        table[j] = float(value)
        value = context.multiply(value, factor)
    table.setflags(write=False)
    return table
