"""Derived statistics: numpy's on the records, and intervals that hold whatever counts are within theirs."""

from __future__ import annotations

import numpy as np
import pytest
from harness.examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.derived import (
    Bounded,
    answers_to,
    correlation,
    difference,
    mean,
    mean_of_counts,
    quantile,
    ratio,
    share,
    total,
    variance,
)
from equipoise.derived.bounded import Numbers
from equipoise.errors import InvalidArgument
from equipoise.model.results import AnswerMethod, Answers
from equipoise.queries.axis_weights import WHOLE
from equipoise.queries.fixed_point import ONE
from equipoise.queries.numeric_values import NumericValues, numeric_values
from equipoise.queries.predicates import Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal, Sum
from equipoise.results import Labels, Results

EDGES = (-30.0, 0.0, 10.0, 25.0, 100.0)
DELAY = Attribute("delay", (*bin_labels(EDGES), "cancelled"), EDGES, missing="cancelled")
GRADE = Attribute("grade", ("3", "1", "2"))
VALUES = numeric_values(DELAY, low=-30, high=25)
EXACT = numeric_values(GRADE)
seeds = st.integers(0, 2**32 - 1)
NEARLY = 1e-9


class Table:
    """Some records with two values each, and counts of them within intervals that hold the truth."""

    def __init__(self, seed: int, width: float) -> None:
        self.random = np.random.default_rng(seed)
        records = int(self.random.integers(1, 60))
        self.bins = self.random.choice(4, records, p=self.random.dirichlet(np.ones(4)))
        self.delays = np.clip(
            self.random.uniform(np.array(EDGES)[self.bins], np.array(EDGES)[self.bins + 1]), -30, 25
        )
        self.grades = self.random.choice(3, records, p=self.random.dirichlet(np.ones(3)))
        self.width = width

    def around(self, truth: Numbers) -> Bounded:
        above, below = (self.random.uniform(0, self.width, truth.shape) for _ in range(2))
        return Bounded(truth + self.random.uniform(-below, above), np.maximum(truth - below, 0), truth + above)

    def counts(self) -> Bounded:
        """Of each bin, and of cancelled flights, of which nothing may depend."""
        return self.around(np.append(np.bincount(self.bins, minlength=4), self.random.integers(0, 9)).astype(float))

    def pairs(self) -> Bounded:
        found = np.zeros((5, 3))
        np.add.at(found, (self.bins, self.grades), 1.0)
        return self.around(found)


def holds(found: Bounded, truth: float) -> bool:
    return bool(found.lows - NEARLY <= truth <= found.highs + NEARLY)


tables = st.builds(Table, seeds, st.sampled_from([0.0, 0.5, 3.0, 30.0]))


@given(tables, st.sampled_from([0.0, 0.1, 0.5, 0.75, 1.0]))
def test_intervals_hold_whatever_the_records_are_within_their_bins(table: Table, level: float) -> None:
    counts = table.counts()
    for found, truth in (
        (mean_of_counts(counts, VALUES), table.delays.mean()),
        (variance(counts, VALUES), table.delays.var()),
        (quantile(counts, VALUES, level), np.quantile(table.delays, level)),
    ):
        assert holds(found, float(truth))
    numbers = np.array([3.0, 1.0, 2.0])[table.grades]
    if min(table.delays.std(), numbers.std()) > 1e-6:
        assert holds(correlation(table.pairs(), VALUES, EXACT), float(np.corrcoef(table.delays, numbers)[0, 1]))


@given(tables)
def test_sums_and_means_hold_with_the_rounding_of_the_answer_and_the_error_of_bins(table: Table) -> None:
    units = np.array(VALUES.weights(0).units)[table.bins]
    weighed = table.around(np.array(float(units.sum() // WHOLE)))
    counted = table.around(np.array(float(len(table.bins))))
    assert holds(total(weighed, counted, VALUES), float(table.delays.sum()))
    assert holds(mean(weighed, counted, VALUES), float(table.delays.mean()))


@pytest.mark.parametrize("values", [VALUES, EXACT])
def test_a_sum_holds_for_the_least_and_the_largest_number_of_records(values: NumericValues) -> None:
    """All records have the lowest value, below 0 or above, so that their weights add up to nothing."""
    counted = Bounded(np.array(5.0), np.array(0.0), np.array(10.0))
    assert all(holds(total(Bounded.exact(0), counted, values), float(values.low * records)) for records in (0, 10))


def test_a_mean_s_interval_covers_bins_whose_records_are_all_at_one_end() -> None:
    """Nothing is uncertain but where in their bin the values are: the interval is no narrower."""
    counted = Bounded.exact(1000)
    weighed = Bounded.exact(VALUES.weights(0).units[2] * 1000 // WHOLE)
    found = mean(weighed, counted, VALUES)
    assert all(holds(found, each) for each in (10.0, 17.5, 25.0))


def test_a_mean_covers_the_part_of_a_record_that_rounding_took() -> None:
    """Three records of the middle grade, of weight a half, and one of the highest: 1.5 + 1, told as 2."""
    found = mean(Bounded.exact(2), Bounded.exact(4), EXACT)
    assert holds(found, (2 + 2 + 2 + 3) / 4)


@pytest.mark.parametrize("level", [0.0, 0.25, 0.5, 0.9, 1.0])
def test_exact_counts_of_exact_values_give_numpy_s_numbers(level: float) -> None:
    random = np.random.default_rng(3)
    counts = random.integers(0, 9, (4, 5, 3)).astype(float)
    counts[0, 0] = 0, 2, 0
    found = Bounded(counts, counts, counts)
    for place in np.ndindex(4, 5):
        records = np.repeat([3.0, 1.0, 2.0], counts[place].astype(int))
        for each, truth in (
            (mean_of_counts(found, EXACT), records.mean()),
            (variance(found, EXACT), records.var()),
            (quantile(found, EXACT, level), np.quantile(records, level)),
        ):
            assert each.values[place] == pytest.approx(truth)
            assert each.lows[place] - NEARLY <= truth <= each.highs[place] + NEARLY
    assert np.allclose(mean_of_counts(found, EXACT).lows, mean_of_counts(found, EXACT).highs)
    assert np.allclose(variance(found, EXACT).lows, variance(found, EXACT).highs)


def test_the_bounds_of_a_mean_are_reached_by_some_counts() -> None:
    counts = Bounded(np.array([2.0, 2, 2]), np.array([1.0, 0, 2]), np.array([3.0, 4, 5]))
    found = mean_of_counts(counts, EXACT)  # of the values 3, 1, 2
    corners = [(3 * a + b + 2 * c) / (a + b + c) for a in (1, 2, 3) for b in range(5) for c in (2, 3, 4, 5)]
    assert float(found.lows) == pytest.approx(min(corners))
    assert float(found.highs) == pytest.approx(max(corners))


@pytest.mark.parametrize("level", [0.25, 0.5, 0.75])
def test_the_bounds_of_a_quantile_are_reached_by_some_counts(level: float) -> None:
    """The told counts have each quantile at 2; counts within their intervals have it anywhere."""
    counts = Bounded(np.array([1.0, 1, 30]), np.array([0.0, 0, 3]), np.array([20.0, 20, 30]))
    found = quantile(counts, EXACT, level)  # of the values 3, 1, 2
    assert float(found.values) == 2.0
    within = [np.quantile(np.repeat([3.0, 1.0, 2.0], (a, b, 3)), level) for a in (0, 1, 20) for b in (0, 1, 20)]
    assert (float(found.lows), float(found.highs)) == (min(within), max(within)) == (1.0, 3.0)


def test_of_no_records_there_is_no_mean_and_where_none_may_be_it_may_be_anything() -> None:
    nothing = Bounded(np.zeros(3), np.zeros(3), np.zeros(3))
    for found in (mean_of_counts(nothing, EXACT), variance(nothing, EXACT), quantile(nothing, EXACT, 0.5)):
        assert np.isnan(found.values)
    few = mean(
        Bounded(np.array(0.4), np.array(0.0), np.array(2.0)),
        Bounded(np.array(1.0), np.array(0.0), np.array(2.0)),
        EXACT,
    )
    assert (float(few.lows), float(few.highs)) == (1.0, 3.0)


def test_without_intervals_there_are_none_but_what_is_always_true() -> None:
    unknown = Bounded(np.array([4.0, 4, 4]), *(np.full(3, np.nan) for _ in range(2)))
    found = quantile(unknown, EXACT, 0.5)
    assert (float(found.values), float(found.lows), float(found.highs)) == (2.0, 1.0, 3.0)
    assert float(mean_of_counts(unknown, EXACT).highs) == 3.0
    assert np.isnan(ratio(Bounded.exact(1), Bounded(np.array(1.0), np.array(np.nan), np.array(np.nan))).lows)


@settings(max_examples=examples(50))
@given(seeds)
def test_differences_ratios_and_shares_hold(seed: int) -> None:
    random = np.random.default_rng(seed)
    whole = float(random.integers(1, 40))
    part = float(random.integers(0, int(whole) + 1))
    table = Table(seed, 5.0)
    one, other = table.around(np.array(part)), table.around(np.array(whole))
    assert holds(difference(one, other), part - whole)
    assert holds(share(one, other), part / whole)
    found = ratio(one, other)
    assert np.isnan(found.lows) == (other.lows <= 0)
    assert np.isnan(found.lows) or holds(found, part / whole)


def test_answers_are_read_by_their_statement() -> None:
    schema = Schema((DELAY, GRADE))
    statements = (Marginal(("grade", "delay")), Among("grade", ("1",)), Sum("grade", ("delay",)))
    values = np.arange(21) * (ONE // 100)
    answers = Answers(
        values, np.full(21, AnswerMethod.GAUSSIAN, np.uint8), values - 5, values + 5, np.zeros(21, np.int64)
    )
    results = Results("r", answers, Labels(schema, statements))
    assert answers_to(results, 0, 100).values.shape == (3, 5)
    assert answers_to(results, 1, 100).values == pytest.approx(15)
    assert answers_to(results, 2, 100).highs.tolist() == pytest.approx([16, 17, 18, 19, 20])
    with pytest.raises(InvalidArgument, match="3 is none of the linear queries"):
        answers_to(results, 3, 100)
    with pytest.raises(InvalidArgument, match="without their statements"):
        answers_to(Results("r", answers), 0, 100)
