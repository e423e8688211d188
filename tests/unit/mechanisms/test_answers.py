"""Answers and their intervals: what is cut, what is not, and what each method carries."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.answers import flat, some_answers

from equipoise.model.results import NO_ANSWERS, WITH_STANDARD_ERROR, AnswerMethod, Answers
from equipoise.queries.fixed_point import ONE
from equipoise_server.mechanisms.answers import (
    MAX_PARTS,
    answers_within,
    moved_into,
    noisy_on_grid,
    standard_error_on_grid,
    uncertified,
    with_answers,
)
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

HALF, WIDTH = ONE // 2, ONE // 8


def ends(value: int, half_width: int = WIDTH) -> tuple[int, int]:
    """The interval of one measurement."""
    answers = answers_within(np.array([value]), AnswerMethod.GAUSSIAN, half_width, 5)
    answers.check()
    assert (answers.values.tolist(), answers.standard_errors.tolist()) == ([value], [5])
    return int(answers.lows[0]), int(answers.highs[0])


def test_an_interval_is_cut_at_0_and_1_and_its_value_is_not() -> None:
    assert ends(HALF) == (HALF - WIDTH, HALF + WIDTH)
    assert ends(0) == (0, WIDTH)
    assert ends(-WIDTH + 1) == (0, 1)
    assert ends(-WIDTH) == (0, 0)
    assert ends(ONE) == (ONE - WIDTH, ONE)
    assert ends(ONE + WIDTH - 1) == (ONE - 1, ONE)


def test_a_measurement_that_refutes_its_interval_is_cut_first() -> None:
    assert ends(-WIDTH - 1) == ends(-5 * WIDTH) == (0, WIDTH)
    assert ends(ONE + WIDTH + 1) == ends(ONE + 5 * WIDTH) == (ONE - WIDTH, ONE)


def test_a_half_width_of_1_says_nothing_wherever_the_value_lies() -> None:
    for value in (-3 * ONE, -WIDTH, 0, HALF, ONE, 3 * ONE):
        assert ends(value, ONE) == (0, ONE)
    assert ends(-WIDTH, ONE - 1) == (0, ONE - 1 - WIDTH)


def test_half_widths_may_differ() -> None:
    answers = answers_within(np.array([HALF, HALF]), AnswerMethod.SYNOPSIS, np.array([1, ONE]))
    assert (answers.lows.tolist(), answers.highs.tolist()) == ([HALF - 1, 0], [HALF + 1, ONE])


def test_a_fitted_value_is_moved_into_the_interval_which_stays() -> None:
    measured = answers_within(np.array([HALF] * 3), AnswerMethod.GAUSSIAN, WIDTH, 7)
    fitted = moved_into(measured, np.array([HALF + 3, 0, ONE]), AnswerMethod.PROJECTION)
    assert fitted.values.tolist() == [HALF + 3, HALF - WIDTH, HALF + WIDTH]
    assert set(fitted.methods.tolist()) == {AnswerMethod.PROJECTION}
    for name in ("lows", "highs", "standard_errors"):
        assert getattr(fitted, name).tolist() == getattr(measured, name).tolist()


def test_answers_are_replaced_in_their_order() -> None:
    whole = uncertified(np.arange(4))
    parts = answers_within(np.array([7, 8]), AnswerMethod.LAPLACE, 3, 1)
    told = with_answers(whole, np.array([False, True, False, True]), parts)
    assert told.values.tolist() == [0, 7, 2, 8]
    assert told.certified.tolist() == told.measured.tolist() == [False, True, False, True]
    assert flat(with_answers(whole, np.zeros(4, np.bool_), NO_ANSWERS)) == flat(whole)


def test_sums_of_noisy_counts_are_unbiased_and_what_does_not_fit_is_cut() -> None:
    assert noisy_on_grid(np.array([-1, 3, 9]), 8).tolist() == [-ONE // 8, 3 * ONE // 8, 9 * ONE // 8]
    for total in (1, 1000, 1 << 40):
        most = np.array([(1 << 62) - 1])
        high, low = (int(noisy_on_grid(side * most, total)[0]) for side in (1, -1))
        assert high == min(MAX_PARTS * ONE, ((1 << 42) - 1) * ONE // total)
        assert low in (-high, -high - 1)


@pytest.mark.parametrize("total", [1, 37, 48_842])
def test_a_standard_error_is_the_root_of_the_variance_rounded_up(total: int) -> None:
    for variance in (Fraction(1), Fraction(9, 4), Fraction(12345, 7)):
        units = standard_error_on_grid(variance, total)
        assert ((units - 1) * total) ** 2 < variance * (1 << 80) <= (units * total) ** 2
    assert standard_error_on_grid(Fraction(0), total) == 0
    assert standard_error_on_grid(Fraction(1 << 90), total) == min(MAX_PARTS * ONE, (ONE << 45) // total)


@pytest.mark.parametrize("rate", [Fraction(1, 50), Fraction(1, 2), Fraction(3)])
def test_the_variance_of_laplace_noise_is_that_of_its_law(rate: Fraction) -> None:
    ratio = math.exp(-rate)
    law = [(1 - ratio) / (1 + ratio) * ratio ** abs(value) for value in range(-3000, 3001)]
    summed = math.fsum(mass * value**2 for mass, value in zip(law, range(-3000, 3001), strict=True))
    assert float(DiscreteLaplace(rate).variance) == pytest.approx(summed, rel=1e-9)
    assert DiscreteGaussian(Fraction(40)).variance == 40


def test_a_truth_at_an_end_is_inside_and_uncertified_answers_miss_nothing() -> None:
    answers = some_answers(np.full(4, HALF), np.array([1, 1, 1, AnswerMethod.UNCERTIFIED]), WIDTH)
    assert answers.misses(np.array([0.375, 0.625, 0.6251, 0.9])).tolist() == [False, False, True, False]


@pytest.mark.parametrize("method", AnswerMethod)
def test_a_method_says_what_an_answer_carries(method: AnswerMethod) -> None:
    answers = some_answers(np.full(2, HALF), method, WIDTH)
    answers.check()
    assert answers.certified.all() == (method is not AnswerMethod.UNCERTIFIED)
    assert answers.measured.all() == (method in WITH_STANDARD_ERROR)
    for name, allowed in (("highs", answers.certified.all()), ("standard_errors", answers.measured.all())):
        changed: dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]] = {name: np.full(2, ONE - 1)}
        told = replace(answers, **changed)  # type: ignore[arg-type]
        if allowed:
            told.check()
        else:
            with pytest.raises(ValueError, match=r"^highs must be 0 for|^standard_errors must be"):
                told.check()


def test_parts_are_joined_and_taken() -> None:
    parts = [some_answers(np.arange(count), 3, 2) for count in (2, 0, 3)]
    assert Answers.join(parts).values.tolist() == [0, 1, 0, 1, 2]
    assert flat(Answers.join(parts)[2:]) == flat(parts[2])
    assert len(Answers.join([])) == 0
