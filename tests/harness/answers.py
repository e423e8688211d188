"""Answers as tests make and compare them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import Answers, ResultColumns
from equipoise.queries.fixed_point import ONE


def some_answers(values: NDArray[np.int64], methods: NDArray[np.integer] | int, half_width: int = 0) -> Answers:
    """Valid answers with these values, int64[k]: intervals of one half-width, and standard errors of half of it."""
    ways = np.full(len(values), methods, np.uint8)
    plain = Answers(values, ways, *(np.zeros(len(values), np.int64) for _ in range(3)))
    return Answers(
        values,
        ways,
        np.where(plain.certified, np.clip(values - half_width, 0, ONE), 0),
        np.where(plain.certified, np.clip(values + half_width, 0, ONE), 0),
        np.where(plain.measured, half_width // 2, 0),
    )


def flat(answers: Answers) -> tuple[int, ...]:
    """All that answers carry, as plain numbers: columns one after another."""
    return tuple(number for column in answers.columns for number in column.tolist())


def flat_chunks(chunks: Iterable[ResultColumns]) -> tuple[int, ...]:
    """All numbers of the messages of one stream."""
    return flat(Answers.join(chunk.answers for chunk in chunks))


def to_bytes(answers: Answers) -> bytes:
    """All that answers carry, as bytes."""
    return b"".join(column.tobytes() for column in answers.columns)


def half_widths(answers: Answers) -> NDArray[np.float64]:
    """Of those that have intervals, as fractions."""
    chosen = answers[answers.certified]
    return np.asarray((chosen.highs - chosen.lows) / (2.0 * ONE))


def misses_shortened(answers: Answers, truths: NDArray[np.float64], part: float) -> NDArray[np.bool_]:
    """Which truths lie outside intervals that are only so large a part of theirs, about the same middle.

    Where an interval is cut at 0 or 1 the other end alone is moved, as no truth lies beyond the cut.
    """
    units, widths = truths * float(ONE), answers.highs - answers.lows
    cut = (1 - part) / 2 * widths
    lows, highs = answers.lows + cut * (answers.lows > 0), answers.highs - cut * (answers.highs < ONE)
    return np.asarray(answers.certified & ((units < lows) | (units > highs)))
