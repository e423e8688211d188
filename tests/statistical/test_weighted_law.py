"""Draws from exp(phi) and from integer weights against their laws, with a stated chance of a false alarm.

The exact law of the accept step is enumerated in the unit tests; here the whole sampler is run, so that an error in
proposing, in reading the stream or in the loop would show. The seeds are fixed; over random ones, all comparisons
together raise a false alarm with probability at most 10^-6, divided evenly over them.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from statistical.binomial_bins import deviates

from equipoise_server.randomness.stream import KeyedStream
from equipoise_server.randomness.weighted import draw_exponential, draw_weighted, draw_weighted_many

FALSE_ALARM = 1e-6
COMPARISONS = 9  # four laws, small calls, three forms of integer weights, permutations
DRAWS = 60_000
UNIT = 1 << 48


def is_rejected(drawn: NDArray[np.int64], law: NDArray[np.float64]) -> bool:
    """Whether the draws deviate from the law, cell by cell."""
    return deviates(np.bincount(drawn, minlength=len(law)), law, FALSE_ALARM / COMPARISONS)


def exponents_of(law: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.round(np.log(law) * UNIT).astype(np.int64)


LAWS = {
    "zipf": 1 / np.arange(1.0, 41.0),
    "flat": np.ones(300),
    "one heavy, many light": np.append(np.full(20_000, 1e-6), 1.0),
    "far cells": np.append(np.exp(-np.arange(8.0)), np.exp(-np.arange(50.0, 90.0))),
}


@pytest.mark.parametrize("name", LAWS)
def test_exponential_draws_follow_the_law(name: str) -> None:
    law = LAWS[name] / LAWS[name].sum()
    drawn = draw_exponential(exponents_of(law), DRAWS, KeyedStream.derive(b"\x06" * 32, "law", name))
    assert not is_rejected(drawn, law)


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_a_wrong_learning_rate_is_rejected(factor: float) -> None:
    law = LAWS["zipf"] / LAWS["zipf"].sum()
    exponents = (exponents_of(law) * factor).astype(np.int64)
    drawn = draw_exponential(exponents, DRAWS, KeyedStream.derive(b"\x06" * 32, "wrong"))
    assert is_rejected(drawn, law)


def test_many_small_calls_follow_the_law_too() -> None:
    law = LAWS["zipf"] / LAWS["zipf"].sum()
    stream = KeyedStream.derive(b"\x06" * 32, "small calls")
    drawn = np.concatenate([draw_exponential(exponents_of(law), 3, stream) for _ in range(4000)])
    assert not is_rejected(drawn, law)


def test_integer_weights_are_followed() -> None:
    weights = np.array([5, 0, 1, 700, 300, 44, 0, 950], dtype=np.uint64)
    law = weights / weights.sum()
    stream = KeyedStream.derive(b"\x06" * 32, "integers")
    assert not is_rejected(draw_weighted_many(weights, DRAWS, stream), law)
    scaled = [int(weight) << 100 for weight in weights]
    assert not is_rejected(draw_weighted_many(scaled, DRAWS, stream), law)
    assert not is_rejected(np.array([draw_weighted(scaled, stream) for _ in range(DRAWS // 4)]), law)
    wrong = weights + np.uint64(20)
    assert is_rejected(draw_weighted_many(wrong, DRAWS, stream), law)


def test_permutations_are_uniform() -> None:
    stream = KeyedStream.derive(b"\x06" * 32, "permutations")
    codes = [int("".join(map(str, stream.permutation(4).tolist())), 4) for _ in range(12_000)]
    _, places = np.unique(np.array(codes), return_inverse=True)
    assert not is_rejected(places, np.full(24, 1 / 24))
    # A shuffle that never leaves an element in place (Sattolo's) has 6 of the 24 orders only.
    assert is_rejected(np.repeat(np.arange(6), 2000), np.full(24, 1 / 24))
