"""Rounding in a grant's fits: no count is further from the exact one than its slack says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise.queries.meanings import Meaning, Told, meaning_of, subsets
from equipoise.queries.own_precision import NO_PARTS, OwnPrecision, cells_outside
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_single
from equipoise_server.mechanisms.grant.fits import NOT_MEASURED, Fits, MeasuredParts
from equipoise_server.mechanisms.grant.rounded import OPERATION, Rounded, in_units, moved_towards, summed
from equipoise_server.mechanisms.grant.standing_counts import combined
from equipoise_server.mechanisms.residuals.estimates import Estimates

Exact = NDArray[Any]  # of fractions
A, B, C = (attribute(name) for name in "abc")


def meaning(statement: Statement, sizes: Iterable[int]) -> Meaning:
    """What a statement asks of attributes a, b and so on, with categories 0, 1 and so on."""
    named = zip("abc", sizes, strict=False)
    schema = Schema(tuple(Attribute(name, tuple(map(str, range(size)))) for name, size in named))
    return meaning_of(compile_single(statement, schema), repr(statement).encode())


def told_by(statement: Statement, sizes: Iterable[int]) -> Told:
    told = meaning(statement, sizes).told
    assert told is not None
    return told


class Paid:
    """Tables that a grant has paid for, as it fits them, and exactly."""

    def __init__(self, sizes: tuple[int, ...], draws: np.random.Generator, largest: int) -> None:
        self.sizes, self.draws, self.largest = sizes, draws, largest
        self.precision = OwnPrecision()
        self.fits = Fits(self.precision)
        self.tables: list[tuple[Told, Fraction, NDArray[np.int64]]] = []

    def pay(self, names: tuple[str, ...], cost: int) -> None:
        """Learn of a table of any whole numbers, as if they were noisy counts."""
        asked = meaning(Marginal(names), self.sizes)
        assert asked.told is not None
        noisy = self.draws.integers(-self.largest, self.largest, asked.counts)
        noisy[self.draws.random(asked.counts) < 0.5] //= 1 << 20  # small ones beside large ones
        self.precision.learn(asked, cost)
        self.fits.learn(asked, cost, noisy, Fraction(1, 100), 1)
        self.tables.append((asked.told, Fraction(cost, asked.moved), noisy.reshape(asked.told.mask.shape)))

    def part(self, part: Axes, measured: tuple[Fraction, Exact] | None = None) -> Exact | None:
        """The mean, by precisions, of all that tells a part."""
        total, known = measured or (Fraction(0), np.zeros((), dtype=object))
        mean = known * total
        for told, precision, noisy in self.tables:
            if set(part) <= set(told.axes):
                own = precision / cells_outside(told, part)
                mean = mean + summed_down(noisy.astype(object), told.axes, part) * own
                total += own
        return None if not total else mean / total

    def counts(self, told: Told, measured: Mapping[Axes, tuple[Fraction, Exact]] = {}) -> list[Fraction]:
        """What the fit tells exactly, of every count."""
        parts = {part: self.part(part, measured.get(part)) for part in subsets(told.table)}
        table = np.zeros([told.sizes[axis] for axis in told.table], dtype=object) + Fraction(0)
        for kept in subsets(told.table):
            shape = [told.sizes[axis] if axis in kept else 1 for axis in told.table]
            for part, known in parts.items():
                if known is not None and set(kept) <= set(part):
                    sign = (-1) ** (len(part) - len(kept))
                    down = np.asarray(summed_down(known, part, kept), dtype=object).reshape(shape)
                    table = np.asarray(table + down * Fraction(sign, cells_outside(told, kept)), dtype=object)
        ordered = table.transpose([told.table.index(axis) for axis in (*told.axes, *told.rest)]) * told.mask
        sums = summed_down(ordered, tuple(range(len(told.table))), tuple(range(len(told.axes))))
        return list(np.asarray(sums, dtype=object).reshape(-1))


def summed_down(table: Exact, axes: Axes, kept: Axes) -> Exact:
    away = tuple(place for place, axis in enumerate(axes) if axis not in kept)
    return np.asarray(table.sum(axis=away), dtype=object) if away else table


def errors(rounded: Rounded, exact: Iterable[Fraction]) -> list[Fraction]:
    return [
        abs(Fraction(count) - true) for count, true in zip(rounded.counts.reshape(-1).tolist(), exact, strict=True)
    ]


def test_means_of_many_noises_err_by_no_more_than_their_slack() -> None:
    draws, counts = np.random.default_rng(5), 50
    mean, exact, total = Rounded(np.zeros(counts)), [Fraction(0)] * counts, Fraction(0)
    for _ in range(200):
        noisy, precision = draws.integers(-(1 << 40), 1 << 40, counts), Fraction(int(draws.integers(1, 1000)), 7)
        total += precision
        mean = moved_towards(mean, Rounded(noisy.astype(np.float64)), float(precision / total))
        exact = [old + (new - old) * precision / total for old, new in zip(exact, noisy.tolist(), strict=True)]
    assert 0 < max(errors(mean, exact)) <= mean.slack
    assert mean.slack <= 200 * 7 * OPERATION * 2.0**40


def test_what_is_moved_keeps_the_slack_that_it_had() -> None:
    one, other = Rounded(np.array([3.0]), 0.25), Rounded(np.array([5.0]), 0.5)
    assert moved_towards(one, other, 0.5).slack >= 0.5
    assert moved_towards(other, one, 0.5).slack >= 0.5


def test_whole_numbers_are_added_up_without_an_error() -> None:
    table = np.random.default_rng(6).integers(-(1 << 35), 1 << 35, (30, 40))
    sums = summed(Rounded(table.astype(np.float64)), (0, 2))
    assert [sums[kept].slack for kept in ((), (0,), (2,), (0, 2))] == [0.0] * 4
    assert (sums[0,].counts == table.sum(axis=1)).all()
    assert sums[()].counts == table.sum()


def test_sums_of_broken_numbers_err_by_no_more_than_their_slack() -> None:
    """Each cell lies a third of a unit from a whole one, all to one side, so that the errors add up."""
    unit = in_units(np.full((64, 64), 1e6 / 3)).unit
    table = (np.rint(1e6 / unit) + 0.25) * unit + np.zeros((64, 64))
    exact = [sum(map(Fraction, table.reshape(-1).tolist()), Fraction(0))]
    total = summed(Rounded(table), (0, 1))[()]
    assert 4096 * unit / 8 < max(errors(total, exact)) <= total.slack <= 4096 * unit
    assert summed(Rounded(table, 1.0), (0, 1))[()].slack >= 4096


@given(
    st.integers(0, 1 << 32),
    st.lists(st.integers(2, 4), min_size=3, max_size=3),
    st.lists(st.tuples(st.sampled_from(["a", "ab", "bc", "abc"]), st.integers(1, 10**9)), max_size=2),
)
def test_fits_err_by_no_more_than_their_slack(seed: int, sizes: list[int], later: list[tuple[str, int]]) -> None:
    paid = Paid(tuple(sizes), np.random.default_rng(seed), 1 << 30)
    paid.pay(("a", "b", "c"), 7)
    for names, cost in later:
        paid.pay(tuple(names), cost)
    for asked in (Marginal(("a", "b", "c")), Marginal(("c",)), (A != "0") & (B == "1"), A.isin(["0", "1"])):
        told = told_by(asked, sizes)
        fitted = paid.fits.counts(told)
        assert max(errors(fitted, paid.counts(told))) <= fitted.slack < 1


@pytest.mark.parametrize("asked", [Marginal(("a", "b")), A.isin(list(map(str, range(30)))) & (B != "5")])
def test_fits_of_a_large_table_err_by_more_than_a_part_of_each_count_and_by_no_more_than_their_slack(
    asked: Statement,
) -> None:
    sizes = (48, 64)
    paid = Paid(sizes, np.random.default_rng(7), 1 << 24)
    for names, cost in [(("a", "b"), 7), (("a", "b"), 9), (("a",), 1001), (("a", "b"), 12345)]:
        paid.pay(names, cost)
    told = told_by(asked, sizes)
    fitted = paid.fits.counts(told)
    errs = errors(fitted, paid.counts(told))
    assert max(errs) <= fitted.slack < 2.0**-4
    if told.whole:
        assert (
            max(err / (abs(Fraction(each)) + 1) for err, each in zip(errs, fitted.counts.tolist(), strict=True))
            > 2.0**-40
        )


def test_measured_parts_bring_their_slack() -> None:
    """The measured number of every part is told with an error of its slack, all to one side."""
    sizes, slack = (3, 4), 0.125
    paid = Paid(sizes, np.random.default_rng(8), 1000)
    paid.pay(("a", "b"), 5)
    numbers = {part: np.full([sizes[axis] for axis in part], 40.0) for part in subsets((0, 1))}
    measured = MeasuredParts({(0,): Fraction(3), (1,): Fraction(4)}, lambda part: Rounded(numbers[part], slack))
    told = told_by(Marginal(("a",)), sizes)
    exact = {
        part: (precision, numbers[part].astype(int).astype(object) + Fraction(1, 8))
        for part, precision in measured.precisions.items()
    }
    fitted = paid.fits.counts(told, measured)
    assert max(errors(fitted, paid.counts(told, exact))) <= fitted.slack < 10
    assert fitted.slack > paid.fits.counts(told, NOT_MEASURED).slack + slack
    assert measured.precisions != NO_PARTS
    assert math.isfinite(fitted.slack)


def test_means_with_a_measurement_err_by_no_more_than_their_slack() -> None:
    counts = np.random.default_rng(9).random((2, 1000)) * [[1e9], [7e8]]
    one = Estimates(counts[0], np.full(1000, 3.0), np.zeros(1000))
    other = Estimates(counts[1], np.full(1000, 1.0), np.zeros(1000))
    mean = combined(one, other)
    exact = [(Fraction(a) + 3 * Fraction(b)) / 4 for a, b in zip(*counts.tolist(), strict=True)]
    errs = errors(Rounded(mean.counts), exact)
    assert max(errs) > 0
    assert all(err <= slack for err, slack in zip(errs, mean.slack.tolist(), strict=True))
    moved = combined(replace(one, slack=np.full(1000, 2.0)), replace(other, slack=np.full(1000, 5.0)))
    assert (moved.slack >= 5).all()
