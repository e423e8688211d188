"""Makes answers with their intervals: cut at 0 and 1, which neither a count nor a statistic can be beyond.

With probability `1 - beta` all truths of a round lie in the intervals of their answers. What gives an interval is
either noise of a known law, whose quantile the half-width is, or a test of what a hypothesis errs by. Everything
here is post-processing of published numbers and public parameters, so it costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import AnswerMethod, Answers
from equipoise.queries.fixed_point import GRID_BITS, ONE, on_grid

MAX_COUNT = (1 << 42) - 1  # what `on_grid` takes
MAX_PARTS = 1 << 20  # an answer is at most so many times all records


def answers_within(
    values: NDArray[np.int64],
    method: AnswerMethod,
    half_widths: NDArray[np.int64] | int,
    standard_errors: NDArray[np.int64] | int = 0,
) -> Answers:
    """Make answers that lie within their half-widths of the truth, all alike or each its own.

    A measurement further than its half-width from all that a truth can be errs by more than that, so the interval
    around it proves nothing. Then the nearest that a truth can be takes its place. The interval around that misses
    the truth only where the measurement errs by more than twice its half-width: the truth is then further than one
    from the same end as the measurement. So it fails with no larger probability. A half-width of 1 stands for all
    larger ones, too: such an interval is all that a truth can be.

    Args:
        values: int64[k], in units of 2^-40; unbiased ones may lie below 0 or above 1.
        method: how all of them were answered.
        half_widths: int64[k] or one for all, in units of 2^-40.
        standard_errors: int64[k] or one for all, in units of 2^-40; 0 where the law of the noise is not known.
    """
    possible = np.clip(values, 0, ONE)
    centres = np.where(np.abs(values - possible) > half_widths, possible, values)
    unknown = np.broadcast_to(np.asarray(half_widths) >= ONE, values.shape)
    return Answers(
        values,
        np.full(len(values), method, np.uint8),
        np.where(unknown, 0, np.clip(centres - half_widths, 0, ONE)),
        np.where(unknown, ONE, np.clip(centres + half_widths, 0, ONE)),
        np.full(len(values), standard_errors, np.int64),
    )


def uncertified(values: NDArray[np.int64]) -> Answers:
    """Make answers without intervals. `values`: int64[k], in units of 2^-40."""
    nothing = np.zeros(len(values), np.int64)
    methods = np.full(len(values), AnswerMethod.UNCERTIFIED, np.uint8)
    return Answers(values, methods, nothing, nothing, nothing)


def moved_into(answers: Answers, values: NDArray[np.int64], method: AnswerMethod) -> Answers:
    """Give fitted values to measured answers: each moved into the interval, which stays as it is.

    Args:
        answers: measured, with intervals, k of them.
        values: fitted, int64[k], in units of 2^-40.
        method: how these values were found.
    """
    methods = np.full(len(values), method, np.uint8)
    return replace(answers, values=np.clip(values, answers.lows, answers.highs), methods=methods)


def with_answers(answers: Answers, chosen: NDArray[np.bool_], parts: Answers) -> Answers:
    """Replace the chosen answers by others.

    Args:
        answers: k of them.
        chosen: which of them are replaced, bool[k].
        parts: one answer for each that is chosen, in order.
    """
    places = np.arange(len(answers))
    places[chosen] = len(answers) + np.arange(len(parts))
    return Answers.join((answers, parts))[places]


def noisy_on_grid(noisy: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Return `noisy / total` in units of 2^-40, rounded down. Not cut at 0 and 1: that would bias sums.

    It is cut where numbers would not fit: at 2^20 times all records and at 2^42, which says nothing anyhow.

    Args:
        noisy: int64[k], counts with noise.
        total: the number of records, above 0.
    """
    most = min(MAX_COUNT, total * MAX_PARTS)
    return on_grid(np.clip(noisy, -most, most), total)


@lru_cache(maxsize=256)
def standard_error_on_grid(variance: Fraction, total: int) -> int:
    """Return the root of `variance`, as a part of `total` in units of 2^-40, rounded up.

    Args:
        variance: of the noise on a count, in records squared.
        total: the number of records, above 0.
    """
    square = math.ceil(variance * (1 << 2 * GRID_BITS) / total**2)
    return min(MAX_PARTS << GRID_BITS, math.isqrt(max(0, square - 1)) + (square > 0))
