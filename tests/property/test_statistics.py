"""Statistics against what they say, in fractions; each Delta on every small table and every replaced record."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from harness.examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import CappedSum, CountDistinct, Quantile, Statistic, Variance, median
from equipoise.queries.statistics import Databases, grid_units
from equipoise.queries.workload_compiler import compile_statistic
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.low_sensitivity.database_question import database_of

EDGES = (-1.0, 0.0, 2.0, 3.0)
SCHEMA = Schema(
    (
        Attribute("colour", ("red", "green")),
        Attribute("size", (*bin_labels(EDGES), "none"), EDGES, missing="none"),
    )
)
MIDDLES = (Fraction(1, 8), Fraction(1, 2), Fraction(7, 8), Fraction(0))  # within the range, as 2^-40 can hold them
UNIVERSE = SCHEMA.universe_size
Records = tuple[int, ...]  # universe cells, ascending

LEVELS = (0.0, 0.5, 0.75)
WINDOWS = (0.01, 0.3, 0.5, 1.0)
STATISTICS: tuple[Statistic, ...] = (
    *(Quantile("size", level, window) for level in LEVELS for window in WINDOWS),
    Variance("size"),
    CountDistinct(("size",)),
    CountDistinct(("size", "colour")),
    *(CappedSum("size", cap) for cap in (-1.0, -0.7, 1.0, 3.0)),
)


def expected(statistic: Statistic, records: Records) -> Fraction:
    """What a statistic means, said once more, of records one by one and without rounding."""
    number, places = len(records), sorted(MIDDLES[cell % 4] for cell in records)
    match statistic:
        case Quantile(_, level, window):
            some = max(1, math.floor(Fraction(str(window)) * number))
            begin = math.floor(Fraction(str(level)) * number - Fraction(some, 2))
            begin = min(max(begin, 0), number - some)
            return sum(places[begin : begin + some], Fraction(0)) / some
        case Variance():
            mean = sum(places, Fraction(0)) / number
            return sum(((place - mean) ** 2 for place in places), Fraction(0)) / number
        case CountDistinct(names):
            different = {
                tuple(divmod(cell, 4)[axis] for axis in map(SCHEMA.names.index, names)) for cell in records
            }
            return Fraction(len(different), number)
        case CappedSum(_, cap):
            most = Fraction(round((Fraction(str(cap)) + 1) / 4 * 2**40), 2**40)
            return sum((min(place, most) for place in places), Fraction(0)) / number


def tables(number: int) -> list[Records]:
    """Every table of so many records."""
    return list(itertools.combinations_with_replacement(range(UNIVERSE), number))


def databases(some: list[Records]) -> Databases:
    histograms = [np.bincount(records, minlength=UNIVERSE) for records in some]
    cells = [np.flatnonzero(each) for each in histograms]
    lengths = [len(each) for each in cells]
    return Databases(
        SCHEMA.sizes,
        np.cumsum([0, *lengths[:-1]]),
        np.concatenate(cells),
        np.concatenate([each[some] for each, some in zip(histograms, cells, strict=True)]),
    )


def neighbours(some: list[Records]) -> Iterator[tuple[int, int]]:
    """The numbers of two tables each, of which one is the other with a record replaced: all such."""
    numbers = {records: number for number, records in enumerate(some)}
    for number, records in enumerate(some):
        for place, cell in itertools.product(range(len(records)), range(UNIVERSE)):
            other = numbers[tuple(sorted((*records[:place], *records[place + 1 :], cell)))]
            if number <= other:
                yield number, other


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_no_replaced_record_moves_a_statistic_further_than_its_delta(number: int) -> None:
    some = tables(number)
    at_once, pairs = databases(some), np.array(sorted(set(neighbours(some))))
    for statistic in STATISTICS:
        compiled = compile_statistic(statistic, SCHEMA, "statement")
        values, delta = compiled.values(at_once), compiled.sensitivity(number)
        exact = np.array([expected(statistic, records) for records in some])
        assert values.tolist() == [math.floor(each * 2**40) for each in exact]
        assert int(np.abs(values[pairs[:, 0]] - values[pairs[:, 1]]).max()) <= grid_units(delta)
        furthest = np.abs(exact[pairs[:, 0]] - exact[pairs[:, 1]]).max()
        assert furthest <= delta
        # A single record is all there is: nothing else that its combination could be new beside.
        assert furthest == delta or (number == 1 and isinstance(statistic, CountDistinct))


def test_the_exact_median_can_move_over_the_whole_range() -> None:
    exact = compile_statistic(median("size", 1e-9), SCHEMA, "statement")
    smoothed = compile_statistic(median("size", 0.1), SCHEMA, "statement")
    low, high = np.zeros(UNIVERSE, np.int64), np.zeros(UNIVERSE, np.int64)
    low[[3, 2]], high[[3, 2]] = (501, 500), (500, 501)  # 1,001 records at both ends, and one of them replaced
    moved = [
        [int(each.values(database_of(SCHEMA.sizes, DenseCounts(table)))[0]) for table in (low, high)]
        for each in (exact, smoothed)
    ]
    assert moved[0] == [0, 7 * 2**37]
    assert exact.sensitivity(1001) == Fraction(7, 8)
    assert 0 < moved[1][1] - moved[1][0] <= grid_units(smoothed.sensitivity(1001))
    assert smoothed.sensitivity(1001) == Fraction(7, 8 * 100)


@settings(max_examples=examples(30))
@given(st.data())
def test_large_tables_are_exact_too(data: st.DataObject) -> None:
    # Odd edges, so that places fill their 40 bits; and tables of up to 2^40 records, listed by what they hold.
    edges = (0.1, 0.3, 1e-3 + 1, 7.77)
    schema = Schema((Attribute("x", bin_labels(edges), edges),))
    counts = np.array(data.draw(st.lists(st.integers(0, 2**38), min_size=3, max_size=3)), dtype=np.int64)
    counts[0] += 1
    places = [
        round((Fraction(str(low)) + Fraction(str(high)) - 2 * Fraction("0.1")) / 2 / Fraction("7.67") * 2**40)
        for low, high in itertools.pairwise((0.1, 0.3, 1.001, 7.77))
    ]
    total, one = int(counts.sum()), database_of(schema.sizes, DenseCounts(counts))
    first = sum(int(count) * place for count, place in zip(counts, places, strict=True))
    second = sum(int(count) * place**2 for count, place in zip(counts, places, strict=True))
    variance = (Fraction(second, total) - Fraction(first, total) ** 2) / 2**40
    assert compile_statistic(Variance("x"), schema, "").values(one).tolist() == [math.floor(variance)]
    assert compile_statistic(CappedSum("x", 7.77), schema, "").values(one).tolist() == [first // total]
    assert compile_statistic(Quantile("x", 0.5, 1.0), schema, "").values(one).tolist() == [first // total]
    distinct = compile_statistic(CountDistinct(("x",)), schema, "").values(one).tolist()
    assert distinct == [(np.count_nonzero(counts) << 40) // total]
