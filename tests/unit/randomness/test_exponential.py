from __future__ import annotations

import hashlib
from decimal import localcontext
from fractions import Fraction

import numpy as np
import pytest
from harness.random_references import exponential

from equipoise_server.randomness.exponential import MAX_NATS, exponential_bits, exponentials

UNIT = 1 << 48
LIMIT = MAX_NATS * UNIT
# Fixed for ever: a replay of an old round reads the same bits on every machine.
KNOWN_DIGEST = "4cb9a160d840be5827482e927bfe65a7995cb3cb9620b4d6dae79da86d025fd3"
KNOWN_VALUE = "0x1.97db0ccceb0c8p-5"


def exponents() -> list[int]:
    source = np.random.default_rng(20)
    wide = source.integers(-LIMIT, LIMIT + 1, 400).tolist()
    near = source.integers(-3 * UNIT, 3 * UNIT, 300).tolist()
    tiny = source.integers(-5000, 5000, 100).tolist()
    edges = [k * UNIT + d for k in (-700, -1, 0, 1, 700) for d in (-1, 0, 1)]
    part_edges = [(1 << p) + d for p in (12, 24, 36, 47) for d in (-1, 0, 1)]
    return [x for x in [*wide, *near, *tiny, *edges, *part_edges] if abs(x) <= LIMIT]


def test_the_reference_agrees_with_known_digits() -> None:
    e = int(exponential(Fraction(1)) * 10**60)
    assert e == 2718281828459045235360287471352662497757247093699959574966967
    assert abs(exponential(Fraction(300)) * exponential(Fraction(-300)) - 1) < Fraction(1, 1 << 300)
    half = exponential(Fraction(123, 7))
    assert abs(exponential(Fraction(246, 7)) / half**2 - 1) < Fraction(1, 1 << 300)


def test_doubles_are_within_2_to_the_minus_49() -> None:
    chosen = exponents()
    values = exponentials(np.array(chosen, dtype=np.int64)).tolist()
    worst = max(
        abs(Fraction(value) / exponential(Fraction(x, UNIT)) - 1) for x, value in zip(chosen, values, strict=True)
    )
    assert worst < Fraction(1, 1 << 49)
    assert worst > Fraction(1, 1 << 53)  # a reference that always agreed would be no reference


def test_zero_is_exactly_one_and_shapes_are_kept() -> None:
    assert exponentials(np.zeros((2, 3), dtype=np.int64)).tolist() == [[1.0] * 3] * 2
    assert exponentials(np.empty((0, 4), dtype=np.int64)).shape == (0, 4)
    strided = np.arange(60, dtype=np.int64).reshape(6, 10)[:, ::3] * UNIT
    assert np.array_equal(exponentials(strided), exponentials(strided.copy()))


def test_blocks_do_not_show() -> None:
    chosen = np.random.default_rng(1).integers(-LIMIT, LIMIT, 40_000)
    apart = np.concatenate(
        [exponentials(chosen[:17]), exponentials(chosen[17:20_011]), exponentials(chosen[20_011:])]
    )
    assert np.array_equal(exponentials(chosen), apart)


def test_known_answers() -> None:
    chosen = (np.arange(100_000, dtype=np.int64) - 50_000) * 3_940_649_673_949
    digest = hashlib.sha256(exponentials(chosen).astype("<f8").tobytes()).hexdigest()
    assert digest == KNOWN_DIGEST
    assert exponentials(np.array([-3 * UNIT + 1], dtype=np.int64))[0].hex() == KNOWN_VALUE


@pytest.mark.parametrize("exponent", [-LIMIT - 1, LIMIT + 1, -(2**63), 2**63 - 1])
def test_exponents_beyond_700_nats_are_refused(exponent: int) -> None:
    with pytest.raises(ValueError, match="700 nats"):
        exponentials(np.array([0, exponent], dtype=np.int64))


@pytest.mark.parametrize("bits", [64, 192, 320, 1000])
def test_bits_are_within_the_stated_units(bits: int) -> None:
    chosen = [0, 1, 2, UNIT - 1, UNIT, *(abs(x) for x in exponents()[::9]), 3000 * UNIT + 17]
    for x in chosen:
        b = exponential_bits(x, bits)
        ideal = exponential(Fraction(-x, UNIT), bits + 100) * (1 << bits)
        assert b - 1 < ideal < b + 2


def test_bits_far_out() -> None:
    assert exponential_bits(2**64 - 1) == 0
    assert exponential_bits(2000 * UNIT, 3000) > 1 << 100
    # 5000 log2(e) = 7213.475...
    assert exponential_bits(5000 * UNIT, 7400).bit_length() == 7400 - 7213
    for bad in (-1, 1 << 64):
        with pytest.raises(ValueError, match="outside"):
            exponential_bits(bad)


def test_the_callers_decimal_context_does_not_matter() -> None:
    expected = exponential_bits(123_456_789_012_345_678)
    with localcontext() as context:
        context.prec = 3
        context.Emax = 9
        assert exponential_bits(123_456_789_012_345_678) == expected
