"""Faults of the noise, and the checks that catch them. See `test_mutants`."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise_server.randomness import discrete_laplace
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

TINY = 1e-9


def noise_hides_one(_: Path) -> bool:
    """The law that is really drawn moves by at most its rate when a count moves by one."""
    for rate in (Fraction(3, 2), Fraction(1, 4)):
        masses = [mass for mass in DiscreteLaplace(rate).law().values() if mass > Fraction(1, 10**12)]
        if max(abs(math.log(one / other)) for one, other in pairwise(masses)) > rate + TINY:
            return False
    return True


def scaled_noise(patches: pytest.MonkeyPatch) -> None:
    """Every law is drawn with 0.9 times its scale."""
    thresholds = discrete_laplace._thresholds
    patches.setattr(
        discrete_laplace, "_thresholds", lambda rate, digits: thresholds(rate * Fraction(10, 9), digits)
    )


def without_a_coin(patches: pytest.MonkeyPatch) -> None:
    """The coin of the digit 4 is never thrown."""
    thresholds = discrete_laplace._thresholds

    def forgetful(rate: Fraction, digits: int) -> tuple[int, ...]:
        return tuple(0 if digit == 2 else each for digit, each in enumerate(thresholds(rate, digits)))

    patches.setattr(discrete_laplace, "_thresholds", forgetful)


def noise_is_counted_from_words(_: Path) -> bool:
    """Every draw is what plain integers make of the stream's words: nothing is rounded on the way."""
    for rate in (Fraction(1, 3), Fraction(1, 1000)):
        noise = DiscreteLaplace(rate)
        words = iter(KeyedStream.derive(b"\x0b" * 32, "mutants").words(200 * 4 * noise.digits).tolist())
        expected = []
        for _draw in range(200):
            geometric = [
                sum(
                    (next(words) << 64 | next(words) < threshold) << digit
                    for digit, threshold in enumerate(noise.thresholds)
                )
                for _ in range(2)
            ]
            expected.append(geometric[0] - geometric[1])
        if noise.draw(200, KeyedStream.derive(b"\x0b" * 32, "mutants")).tolist() != expected:
            return False
    return True


def float_noise(patches: pytest.MonkeyPatch) -> None:
    """The textbook's inverse of the distribution function, in doubles."""

    def draw(noise: DiscreteLaplace, values: int, stream: KeyedStream) -> NDArray[np.int64]:
        uniform = stream.words(values) / 2.0**64 - 0.5
        lengths = -np.log1p(-2 * np.abs(uniform)) / float(noise.rate)
        rounded: NDArray[np.int64] = np.rint(np.sign(uniform) * lengths).astype(np.int64)
        return rounded

    patches.setattr(DiscreteLaplace, "draw", draw)
