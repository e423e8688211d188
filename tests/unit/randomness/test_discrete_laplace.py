from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np
import pytest
from harness.random_references import ScriptedStream, exponential

from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

WHOLE = 1 << 128
HALF = (1 << 64) - 1
ENUMERABLE = [Fraction(1, 8), Fraction(1, 3), Fraction(7, 10), Fraction(2), Fraction(30), Fraction(1000)]
RATES = [Fraction(1, 10**12), Fraction(355, 113 * 10**8), Fraction(1, 10**15), Fraction(1, 50), *ENUMERABLE]
# Fixed for ever: a replay of an old round reads the same bits on every machine.
KNOWN_SMALL = [4, 0, 2, -7, -2, 0, 0, 1, -3, -2, -1, -2]
KNOWN_DIGEST = "cb38f55aa93e16dedca9a9e5b6414f19723d59d4920d6d5b113d4c1eb353a89b"


def ideal_mass(rate: Fraction, z: int) -> Fraction:
    p = exponential(-rate)
    return (1 - p) / (1 + p) * exponential(-rate * abs(z))


def ideal_beyond(rate: Fraction, z: int) -> Fraction:
    """P(Z > z) of the ideal law, for z >= 0."""
    return exponential(-rate * (z + 1)) / (1 + exponential(-rate))


def total_variation(law: dict[int, Fraction], rate: Fraction) -> Fraction:
    """Half the L1 distance to the ideal law, which has mass beyond the range of the drawn one, rounded up.

    On a grid of 2^-400, since sums of the exact fractions would take minutes.
    """
    grid = 1 << 400
    inside = sum(abs(int(mass * grid) - int(ideal_mass(rate, z) * grid)) + 2 for z, mass in law.items())
    return Fraction(inside + 2 * int(ideal_beyond(rate, max(law)) * grid) + 2, 2 * grid)


@pytest.mark.slow
@pytest.mark.parametrize("rate", ENUMERABLE)
def test_exact_law_is_within_the_stated_slack_of_the_ideal_one(rate: Fraction) -> None:
    noise = DiscreteLaplace(rate)
    law = noise.law()
    assert sum(law.values()) == 1
    assert min(law) == -max(law) == 1 - (1 << noise.digits)
    distance = total_variation(law, rate)
    assert distance <= noise.truncation_delta() < Fraction(1, 1 << 120)


def test_this_enumeration_rejects_a_wrong_scale_and_a_forgotten_digit() -> None:
    rate = Fraction(1, 3)
    noise = DiscreteLaplace(rate)
    wrong = DiscreteLaplace(rate * Fraction(10, 9)).law()
    assert total_variation(wrong, rate) > Fraction(1, 100)
    shorter = noise.thresholds[:-1]
    lost = Fraction(noise.thresholds[-1], WHOLE)
    assert len(shorter) == noise.digits - 1
    assert lost > noise.truncation_delta()


def test_law_is_the_difference_of_two_geometric_numbers() -> None:
    noise = DiscreteLaplace(Fraction(5))
    geometric: dict[int, Fraction] = {}
    for g in range(1 << noise.digits):
        mass = Fraction(1)
        for digit, threshold in enumerate(noise.thresholds):
            one = Fraction(threshold, WHOLE)
            mass *= one if g >> digit & 1 else 1 - one
        geometric[g] = mass
    naive: dict[int, Fraction] = {}
    for first, p in geometric.items():
        for second, q in geometric.items():
            naive[first - second] = naive.get(first - second, Fraction(0)) + p * q
    assert noise.law() == naive


@pytest.mark.parametrize("rate", RATES)
def test_thresholds_are_the_nearest_integers(rate: Fraction) -> None:
    noise = DiscreteLaplace(rate)
    assert rate * (1 << noise.digits) >= 89
    assert noise.digits == 1 or rate * (1 << (noise.digits - 1)) < 89
    for digit, threshold in enumerate(noise.thresholds):
        ideal = WHOLE / (1 + exponential(rate * (1 << digit)))
        assert abs(threshold - ideal) <= Fraction(1, 2) + Fraction(1, 1 << 200)


@pytest.mark.parametrize("rate", [Fraction(3), Fraction(1, 7)])
def test_draw_compares_all_128_bits_of_every_digit(rate: Fraction) -> None:
    noise = DiscreteLaplace(rate)
    never = [HALF, HALF]
    for side in (0, 1):
        for digit, threshold in enumerate(noise.thresholds):
            for number, is_one in (
                (0, True),
                (threshold - 1, True),
                (threshold, False),
                (threshold + (1 << 64), False),
            ):
                words = [never] * (2 * noise.digits)
                words[side * noise.digits + digit] = [number >> 64, number & HALF]
                stream = ScriptedStream([word for pair in words for word in pair])
                value = int(noise.draw(1, stream)[0])
                assert value == (1 - 2 * side) * (1 << digit) * is_one
                assert stream.read == 4 * noise.digits


@pytest.mark.parametrize("rate", RATES)
def test_draw_equals_a_plain_one(rate: Fraction) -> None:
    noise = DiscreteLaplace(rate)
    words = KeyedStream.derive(bytes(32), "plain").words(30 * 4 * noise.digits).tolist()
    numbers = iter([high << 64 | low for high, low in zip(words[::2], words[1::2], strict=True)])
    plain = []
    for _ in range(30):
        first, second = (
            sum(1 << digit for digit, threshold in enumerate(noise.thresholds) if next(numbers) < threshold)
            for _ in range(2)
        )
        plain.append(first - second)
    assert noise.draw(30, KeyedStream.derive(bytes(32), "plain")).tolist() == plain


@pytest.mark.parametrize("rate", [Fraction(1, 10**12), Fraction(1, 4)])
def test_any_cutting_gives_the_same_draws(rate: Fraction) -> None:
    noise = DiscreteLaplace(rate)
    whole = noise.draw(3000, KeyedStream.derive(bytes(32), "cut"))
    stream = KeyedStream.derive(bytes(32), "cut")
    parts = [noise.draw(count, stream) for count in (1, 0, 1499, 7, 1493)]
    assert np.array_equal(np.concatenate(parts), whole)


def test_known_answers() -> None:
    stream = KeyedStream.derive(bytes(range(32)), "known answers", "noise")
    assert DiscreteLaplace(Fraction(1, 3)).draw(12, stream).tolist() == KNOWN_SMALL
    drawn = DiscreteLaplace(Fraction(7, 10**9)).draw(10_000, stream)
    assert hashlib.sha256(drawn.astype("<i8").tobytes()).hexdigest() == KNOWN_DIGEST


@pytest.mark.parametrize("rate", ENUMERABLE)
def test_tail_and_quantile_bound_the_law_that_is_drawn(rate: Fraction) -> None:
    noise = DiscreteLaplace(rate)
    law = noise.law()
    beyond = Fraction(0)  # P(Z > z), from the top down
    exact = {}
    for z in range(max(law), -1, -1):
        exact[z] = beyond
        beyond += law[z]
    for size in range(1, max(law) + 1, max(1, max(law) // 40)):
        assert (
            2 * exact[size - 1]
            <= Fraction(noise.tail(size))
            < 2 * exact[size - 1] * (1 + Fraction(1, 1 << 50)) + 3 * noise.truncation_delta()
        )
    slack = noise.truncation_delta()
    for probability in (
        Fraction(1, 2),
        Fraction(1, 5),
        1e-3,
        1e-9,
        Fraction(1, 10**25),
        Fraction(1, 10**36),
        slack,
        slack / 2,
    ):
        z = noise.quantile(probability)
        assert exact[z] <= Fraction(probability)
        if z > 0:
            assert exact[z - 1] > Fraction(probability) - 2 * slack  # one less is not proven enough


@pytest.mark.parametrize("rate", [rate for rate in RATES if rate < 1])
def test_quantile_is_exact_at_the_jumps(rate: Fraction) -> None:
    noise = DiscreteLaplace(rate)
    slack = noise.truncation_delta()
    for z in (1, 2, 17, int(20 / rate)):
        jump = ideal_beyond(rate, z) + slack
        nudge = Fraction(1, 10**60)
        assert noise.quantile(jump * (1 + nudge)) == z
        assert noise.quantile(jump * (1 - nudge)) == z + 1


@pytest.mark.parametrize("rate", RATES)
def test_no_quantile_is_beyond_what_can_be_drawn(rate: Fraction) -> None:
    noise = DiscreteLaplace(rate)
    largest = (1 << noise.digits) - 1
    assert noise.quantile(noise.truncation_delta() / 10**9) == largest
    assert noise.tail(largest + 1) >= float(noise.truncation_delta()) > 0
    assert noise.tail(0) == noise.tail(-5) == 1.0
    assert noise.quantile(Fraction(99, 100)) == 0


def test_bad_arguments_are_refused() -> None:
    for rate in (Fraction(0), Fraction(-1), Fraction(1, 10**16)):
        with pytest.raises(ValueError, match="rate"):
            DiscreteLaplace(rate)
    with pytest.raises(ValueError, match="Fraction"):
        DiscreteLaplace(0.1)  # type: ignore[arg-type]
    noise = DiscreteLaplace(Fraction(1, 10**6))
    with pytest.raises(ValueError, match="negative"):
        noise.draw(-1, KeyedStream.derive(bytes(32), "bad"))
    for probability in (0, -0.5, 1, 1.5):
        with pytest.raises(ValueError, match="probability"):
            noise.quantile(probability)
    with pytest.raises(ValueError, match="enumerate"):
        noise.law()
    assert noise.draw(0, ScriptedStream([])).tolist() == []
