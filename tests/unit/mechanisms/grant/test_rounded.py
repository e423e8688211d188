"""Bounds on rounding: the errors of all counts add up to no more than `slack`, which each operation adds to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise_server.mechanisms.grant.rounded import OPERATION, Rounded, in_units, mean, summed, total
from equipoise_server.mechanisms.grant.standing_counts import combined
from equipoise_server.mechanisms.residuals.estimates import Estimates


def error(rounded: Rounded, exact: Iterable[Fraction]) -> Fraction:
    """The sum of all counts' errors."""
    counts = map(Fraction, rounded.counts.reshape(-1).tolist())
    return sum((abs(count - each) for count, each in zip(counts, exact, strict=True)), Fraction(0))


def fractions(counts: NDArray[np.float64]) -> list[Fraction]:
    return list(map(Fraction, counts.reshape(-1).tolist()))


@pytest.mark.parametrize(
    ("old", "new", "weight"),
    [
        (-1.0, 991358631949.0, Fraction(231, 379)),
        (991358631949.0, -1.0, Fraction(231, 379)),
        (397807411804.0, -360724363269.0, Fraction(431, 822)),
        (0.0, 2.0**40 + 1, Fraction(1, 3)),
        (2.0**52 - 1, 2.0**52 - 3, Fraction(2, 3)),
    ],
)
def test_a_mean_errs_by_no_more_than_its_slack_which_is_a_few_operations(
    old: float, new: float, weight: Fraction
) -> None:
    for weights in (float(weight), np.array([float(weight)])):
        told = mean(Rounded(np.array([old])), Rounded(np.array([new])), weights)
        assert error(told, [Fraction(old) + (Fraction(new) - Fraction(old)) * weight]) <= told.slack
        assert np.finfo(np.float64).eps == OPERATION  # twice what one operation errs by
        assert told.slack <= OPERATION * (3 * abs(new - old) + max(abs(old), abs(new)) + 8)
        assert told.slack >= OPERATION * (3 * abs(new - old) * float(weight) + abs(told.counts[0]))


def test_means_of_many_noises_err_by_no_more_than_their_slack() -> None:
    draws, counts, exact = np.random.default_rng(5), 50, [Fraction(0)] * 50
    told, paid = Rounded(np.zeros(counts)), Fraction(0)
    for _ in range(200):
        noisy, precision = draws.integers(-(1 << 40), 1 << 40, counts), Fraction(int(draws.integers(1, 1000)), 7)
        paid += precision
        told = mean(told, Rounded(noisy.astype(np.float64)), float(precision / paid))
        exact = [old + (new - old) * precision / paid for old, new in zip(exact, noisy.tolist(), strict=True)]
    assert 0 < error(told, exact) <= told.slack


def test_what_is_averaged_brings_its_slack() -> None:
    one, other = Rounded(np.array([3.0]), 0.25), Rounded(np.array([5.0]), 0.5)
    assert mean(one, other, 0.5).slack >= 0.75
    assert mean(other, one, np.array([1.0])).slack >= 0.75


def test_whole_numbers_are_added_up_without_an_error() -> None:
    table = np.random.default_rng(6).integers(-(1 << 35), 1 << 35, (30, 40))
    sums = summed(Rounded(table.astype(np.float64)), (0, 2))
    assert [sums[kept].slack for kept in ((), (0,), (2,), (0, 2))] == [0.0] * 4
    assert (sums[0,].counts == table.sum(axis=1)).all()
    assert sums[()].counts == table.sum()


@pytest.mark.parametrize("sign", [-1, 1])
def test_sums_of_parts_of_units_err_by_no_more_than_their_slack(sign: int) -> None:
    """Each cell lies a quarter of a unit from a whole one, all to one side, so that the errors add up."""
    unit = in_units(np.full((64, 64), 1e6 / 3)).unit
    table = sign * ((np.rint(1e6 / unit) + 0.25) * unit + np.zeros((64, 64)))
    sums = summed(Rounded(table), (0, 1))[()]
    assert 4096 * unit / 8 < error(sums, [sum(fractions(table), Fraction(0))]) <= sums.slack <= 4096 * unit
    for kept in ((), (0,), (1,), (0, 1)):
        assert summed(Rounded(table, 3.0), (0, 1))[kept].slack >= 3


def test_sums_that_cancel_are_in_units_of_what_is_added_up() -> None:
    """A unit of the sum itself, which is small, would be too small for the whole numbers that make it up."""
    table = np.array([2.0**60, 0.375, -(2.0**60)])
    numbers, unit, slack = in_units(table)
    assert np.abs(numbers).sum() < 1 << 53
    assert error(Rounded(np.asarray(numbers * unit, dtype=np.float64)), fractions(table)) <= slack


def test_units_of_a_table_add_up_exactly_however_large_it_is() -> None:
    for size in (0.0, 0.3, 5.0, 2.0**51 - 2, 2.0**52 - 1, 2.0**52, 1e300):
        numbers, unit, slack = in_units(np.array([size, -size / 3]))
        assert np.abs(numbers).sum() <= 1 << 52
        assert (
            error(Rounded(np.asarray(numbers * unit, dtype=np.float64)), fractions(np.array([size, -size / 3])))
            <= slack
            <= 2 * unit
        )


def test_a_total_is_no_less_than_the_absolute_values_and_exact_of_whole_numbers() -> None:
    assert total(np.array([-0.5, 0.25, 0.0])) == 2
    assert total(np.array([[-3.0, 4.0], [2.0**50, 1.0]])) == 2.0**50 + 8
    assert total(np.zeros(0)) == 0


def test_means_with_a_measurement_err_by_no_more_than_their_slack() -> None:
    signs = np.random.default_rng(9).choice([-1, 1], (2, 1000))
    counts = signs * np.random.default_rng(9).random((2, 1000)) * [[1e9], [7e5]]
    one = Estimates(counts[0], np.full(1000, 4.0), np.zeros(1000))
    other = Estimates(counts[1], np.full(1000, 1.0), np.zeros(1000))
    for first, second in ((one, other), (other, one)):
        told = combined(first, second)
        both = zip(first.counts.tolist(), second.counts.tolist(), strict=True)
        weight = Fraction(int(second.variances[0]), 5)
        exact = [Fraction(a) * weight + Fraction(b) * (1 - weight) for a, b in both]
        errors = [abs(Fraction(count) - each) for count, each in zip(told.counts.tolist(), exact, strict=True)]
        assert any(errors)
        assert all(each <= slack for each, slack in zip(errors, told.slack.tolist(), strict=True))
        largest = np.maximum(np.abs(first.counts), np.abs(second.counts))
        assert (told.slack >= 7 * OPERATION * largest).all()  # as the comment proves
        for slacks in ((2.0, 5.0), (5.0, 2.0)):
            moved = [
                replace(each, slack=np.full(1000, own)) for each, own in zip((first, second), slacks, strict=True)
            ]
            assert (combined(*moved).slack >= 5).all()
