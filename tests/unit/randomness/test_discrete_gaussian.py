"""The discrete Gaussian sampler, decision by decision, against exponentials computed without decimal or doubles."""

from __future__ import annotations

import functools
import hashlib
import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from harness.random_references import ScriptedStream, exponential
from scipy.stats import norm

from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian, _further_zeros, _least
from equipoise_server.randomness.stream import KeyedStream

SMALL = [Fraction(1, 100), Fraction(1, 4), Fraction(10, 17), Fraction(1), Fraction(9), Fraction(355, 7)]
LARGE = [Fraction(10**6), Fraction(10**14), Fraction(2**80)]
PLAIN = 2  # as words: block 0, positive; then an offset of at most 2; then a coin that keeps it
# Fixed for ever: a replay of an old round reads the same bits on every machine.
KNOWN_SMALL = [6, 1, 1, 1, 2, 0, -3, 0, -1, -2, 2, -5]
KNOWN_DIGEST = "3b91b7b73fc5952f9c3e950812344967c384a152e0b7d378f7342c2c73a5b23b"


def density(variance: Fraction, z: int) -> Fraction:
    return exponential(Fraction(-z * z) / (2 * variance))


def normaliser(variance: Fraction) -> Fraction:
    reach = 1 + math.isqrt(math.ceil(400 * variance))
    return 1 + 2 * sum((density(variance, z) for z in range(1, reach)), Fraction(0))


def is_kept(noise: DiscreteGaussian, block: int, offset: int, coin: int, rest: tuple[int, ...] = ()) -> bool:
    """Whether the negative number of this block and offset is kept; what is proposed after it is positive."""
    level = 1 << (block + 1) | 1
    stream = ScriptedStream([level, offset, coin, *rest] + [PLAIN] * 60)
    drawn = int(noise.draw(1, stream)[0])
    assert drawn in (-(block * noise.width + offset), PLAIN % noise.width)
    return drawn < 0


@pytest.mark.thin(3)
@pytest.mark.slow
@pytest.mark.parametrize("variance", SMALL)
def test_law_of_every_decision_is_the_ideal_one(variance: Fraction) -> None:
    noise, scale = DiscreteGaussian(variance), 1 << 64
    masses = {0: Fraction(1, 4 * noise.width)}  # block 0, and one of its two signs is always kept
    for block in range(8):
        for offset in range(noise.width):
            size = block * noise.width + offset
            if size == 0:
                continue
            low, high = -1, scale - 1
            while high - low > 1:  # the largest first word of a coin that is kept
                middle = (low + high) // 2
                low, high = (middle, high) if is_kept(noise, block, offset, middle) else (low, middle)
            bias = (1 << block) * density(variance, size)
            assert abs(low + 1 - bias * scale) <= 1
            # What the coins decide, but for the last word of 2^64, is the product of proposal and bias.
            masses[size] = Fraction(low + 1, scale) / (noise.width << (block + 2)) * 2
    total = normaliser(variance)
    kept = sum(masses.values())
    for size, mass in masses.items():
        ideal = density(variance, size) / total * (2 if size else 1)
        assert abs(mass / kept - ideal) < Fraction(1, 2**50)


def test_zero_has_one_sign() -> None:
    noise = DiscreteGaussian(Fraction(9))
    stream = ScriptedStream([0b11, 0, 0, PLAIN, 1, 0])
    assert noise.draw(1, stream).tolist() == [1]
    assert stream.read == 6


@pytest.mark.parametrize("variance", [Fraction(9), Fraction(10**14)])
@pytest.mark.parametrize("block", [0, 1, 3])
def test_an_open_coin_is_decided_by_its_further_bits(variance: Fraction, block: int) -> None:
    noise, offset = DiscreteGaussian(variance), 1
    bias = (1 << block) * density(variance, block * noise.width + offset)
    first, rest = divmod(math.floor(bias * 2**128), 1 << 64)
    assert is_kept(noise, block, offset, first, (rest - 40,))
    assert not is_kept(noise, block, offset, first, (rest + 40,))
    stream = ScriptedStream([1 << (block + 1), offset, first, rest])
    assert noise.draw(1, stream).tolist() == [block * noise.width + offset]
    assert stream.read == 6  # 64 further bits left it open, 128 more (all zero) settled it


@pytest.mark.slow
@pytest.mark.thin(2)
@pytest.mark.parametrize(("words", "block"), [([1, 1], 63), ([1, 4], 65)])
def test_the_farthest_blocks_are_drawn_too(words: list[int], block: int) -> None:
    noise = DiscreteGaussian(Fraction(1, 4))
    # Everything after the block reads as zero: a coin of zeros is below any bias, however many it takes.
    assert noise.draw(1, ScriptedStream(words)).tolist() == [-block * noise.width]


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("variance", [*SMALL, Fraction(1000)])
def test_listed_law_is_the_ideal_one(variance: Fraction) -> None:
    law, total = DiscreteGaussian(variance).law(), normaliser(variance)
    assert sum(law.values()) == 1
    assert min(law) == -max(law)
    step = max(1, len(law) // 200)
    for z in list(law)[::step]:
        assert abs(law[z] - density(variance, z) / total) < Fraction(1, 2**150)
    assert 2 * density(variance, max(law) + 1) / total < Fraction(1, 2**180)


@pytest.mark.parametrize("variance", SMALL)
@pytest.mark.parametrize("chance", [0.6, 0.4, 0.05, 1e-3, 1e-9, 1e-30])
def test_quantile_is_proven_and_near_the_smallest(variance: Fraction, chance: float) -> None:
    law = DiscreteGaussian(variance).law(256)
    quantile = DiscreteGaussian(variance).quantile(chance)
    beyond, smallest = Fraction(0), max(law)
    while smallest > 0 and beyond + law[smallest] <= Fraction(chance):
        beyond += law[smallest]
        smallest -= 1
    slack = 1 + math.ceil(0.2 * math.sqrt(variance)) if chance <= 0.05 else 2 * math.ceil(math.sqrt(variance))
    assert smallest <= quantile <= smallest + slack


@pytest.mark.parametrize("variance", [*SMALL, *LARGE])
@pytest.mark.parametrize("chance", [0.499, 0.2, 0.01, 1e-9, 1e-300])
def test_quantile_is_the_smallest_by_its_bound_wherever_the_search_starts(
    variance: Fraction, chance: float
) -> None:
    law = DiscreteGaussian(variance)
    quantile = law.quantile(chance)
    digits = Context(prec=60)
    allowed = digits.multiply(Decimal(chance), digits.subtract(Decimal(1), Decimal("1e-40")))
    assert law._beyond(quantile + 1) <= allowed
    assert quantile == 0 or law._beyond(quantile) > allowed
    beyond = functools.cache(lambda size: law._beyond(size + 1) <= allowed)
    for start in (0, 1, quantile // 3, quantile, quantile + 1, 5 * quantile + 7):
        assert _least(beyond, start) == quantile


@pytest.mark.parametrize("variance", LARGE)
@pytest.mark.parametrize("chance", [0.01, 1e-6, 1e-12, 1e-100])
def test_quantile_of_huge_noise_is_the_normal_one(variance: Fraction, chance: float) -> None:
    quantile = DiscreteGaussian(variance).quantile(chance) / math.sqrt(variance)
    assert norm.isf(chance) * (1 - 1e-9) <= quantile + 1 / math.sqrt(variance)
    assert quantile <= norm.isf(chance) * 1.05
    assert isinstance(DiscreteGaussian(variance).quantile(1e-300), int)


@pytest.mark.parametrize("variance", [*SMALL, *LARGE])
def test_blocks_are_as_narrow_as_the_bias_allows(variance: Fraction) -> None:
    # exp(-width^2 / 2 variance) <= 1/2, and a block narrower by one would exceed it unless it were empty.
    width = DiscreteGaussian(variance).width
    assert exponential(Fraction(width * width) / (2 * variance)) >= 2
    assert width == 1 or exponential(Fraction((width - 1) ** 2) / (2 * variance)) < Fraction(2_000_000_001, 10**9)


def test_known_draws() -> None:
    noise, stream = DiscreteGaussian(Fraction(9)), KeyedStream.derive(bytes(32), "discrete gaussian")
    assert noise.draw(12, stream).tolist() == KNOWN_SMALL
    digest = hashlib.sha256()
    for variance in (*SMALL, *LARGE):
        drawn = DiscreteGaussian(variance).draw(1000, KeyedStream.derive(bytes(32), str(variance)))
        assert drawn.dtype == np.int64
        digest.update(drawn.astype("<i8").tobytes())
    assert digest.hexdigest() == KNOWN_DIGEST


def test_a_block_is_counted_across_words() -> None:
    assert _further_zeros(ScriptedStream([0, 0, 4])) == 130
    assert _further_zeros(ScriptedStream([1 << 63])) == 63


def test_nothing_is_drawn_for_nothing() -> None:
    stream = ScriptedStream([])
    assert DiscreteGaussian(Fraction(1)).draw(0, stream).shape == (0,)
    assert stream.read == 0
    assert DiscreteGaussian(Fraction(1)).truncation_delta() == 0


def test_nonsense_is_refused() -> None:
    for variance in (Fraction(0), Fraction(-1), Fraction(1, 10**6 + 1), Fraction(2**80 + 1)):
        with pytest.raises(ValueError, match="variance"):
            DiscreteGaussian(variance)
    for wrong in (1.0, math.nan, 3):
        with pytest.raises(ValueError, match="not a Fraction"):
            DiscreteGaussian(wrong)  # type: ignore[arg-type]
    noise = DiscreteGaussian(Fraction(2))
    with pytest.raises(ValueError, match="count"):
        noise.draw(-1, ScriptedStream([]))
    for chance in (0.0, 1.0, -0.1):
        with pytest.raises(ValueError, match="probability"):
            noise.quantile(chance)
    with pytest.raises(ValueError, match="enumerate"):
        DiscreteGaussian(Fraction(10**10)).law()
