"""Sizes of universes in words, for messages."""

from __future__ import annotations

import pytest

from equipoise.queries.universe_size import size_in_words


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (1, "1"),
        (336_000, "336,000"),
        (999_999_999, "999,999,999"),
        (10**9, "about 2^30"),
        (2**39, "about 2^39"),
        (2**39 * 3 // 2, "about 2^40"),
        (2**39 * 7 // 5, "about 2^39"),
        (10**100, "about 2^332"),
        (65_536**256, "about 2^4096"),
    ],
)
def test_all_digits_or_the_nearest_power_of_two(size: int, words: str) -> None:
    assert size_in_words(size) == words
