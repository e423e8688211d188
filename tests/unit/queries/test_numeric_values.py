"""What categories stand for: middles of bins and numbers, clamped; their weights, and how wrong they can be."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InvalidArgument
from equipoise.queries.axis_weights import WHOLE, AxisWeights
from equipoise.queries.numeric_values import numeric_values
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Sum
from equipoise.queries.workload_compiler import compile_workload

EDGES = (-60.0, 0.0, 15.0, 180.0, 1500.0)
DELAY = Attribute("delay", (*bin_labels(EDGES), "cancelled"), EDGES, missing="cancelled")
CHILDREN = Attribute("children", ("3", "0", "1.5", "other"), unknown="other")
DAY = Attribute("day", bin_labels((0.0, 86400.0), dates=True), (0.0, 86400.0), dates=True)
NAME = Attribute("name", ("1", "two"))


def test_a_bin_stands_for_its_middle_and_errs_by_half_of_it() -> None:
    values = numeric_values(DELAY, high=180)
    assert [values.low, values.high, values.span] == [Fraction(-60), Fraction(180), Fraction(240)]
    assert values.weights(1).units == (WHOLE // 8, WHOLE * 9 // 32, round(WHOLE * 157.5 / 240), WHOLE, 0)
    assert float(values.error) == pytest.approx(82.5, abs=240 / WHOLE)
    assert values.valued == (0, 1, 2, 3)


def test_numbers_stand_for_themselves_exactly_but_for_the_grid() -> None:
    values = numeric_values(CHILDREN)
    assert values.weights(0).units == (WHOLE, 0, WHOLE // 2, 0)
    assert values.error == 0
    clamped = numeric_values(CHILDREN, low=1.5)
    assert clamped.weights(0).units == (WHOLE, 0, 0, 0)
    assert clamped.weights(0).counted == 0b0001
    assert clamped.valued == (0, 1, 2)


@given(st.data())
def test_no_value_is_further_from_what_stands_for_it_than_the_error(data: st.DataObject) -> None:
    ends = sorted(data.draw(st.sets(st.sampled_from(EDGES), min_size=2, max_size=2)))
    values = numeric_values(DELAY, ends[0], ends[1])
    category = data.draw(st.integers(0, DELAY.bins - 1))
    truth = data.draw(st.fractions(Fraction(EDGES[category]), Fraction(EDGES[category + 1])))
    clamped = min(max(truth, values.low), values.high)
    stands = values.low + values.span * values.weights(0).units[category] / WHOLE
    assert abs(clamped - stands) <= values.error
    assert 0 <= values.weights(0).units[category] <= WHOLE


@pytest.mark.parametrize(
    ("attribute", "low", "high", "field"),
    [
        (NAME, None, None, "statement.attribute"),
        (DAY, None, None, "statement.attribute"),
        (Attribute("a", ("nan", "1")), None, None, "statement.attribute"),
        (Attribute("a", ("1/0", "1")), None, None, "statement.attribute"),
        (Attribute("a", ("1e999", "1")), None, None, "statement.attribute"),
        (Attribute("a", ("?",), unknown="?"), None, None, "statement.attribute"),
        (DELAY, 10, None, "statement.low"),
        (DELAY, math.nan, None, "statement.low"),
        (DELAY, None, math.inf, "statement.high"),
        (DELAY, None, True, "statement.high"),
        (DELAY, 15, 15, "statement.high"),
        (DELAY, 180, 15, "statement.high"),
        (CHILDREN, None, 2, "statement.high"),
        (Attribute("a", ("7",)), None, None, "statement.high"),
    ],
)
def test_what_has_no_values_or_no_range_is_refused_by_name(
    attribute: Attribute, low: float | None, high: float | None, field: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        numeric_values(attribute, low, high)
    assert refused.value.field == field


def test_a_refused_end_names_the_nearest() -> None:
    with pytest.raises(InvalidArgument, match="20 is no edge and no value of the attribute; the nearest is 15"):
        numeric_values(DELAY, low=20)


def test_a_sum_of_unknown_attributes_is_refused_by_name() -> None:
    schema = Schema((DELAY, CHILDREN))
    for statement, field in (
        (Sum("lag"), "statements[0].attribute"),
        (Sum("delay", ("lag",)), "statements[0].by[0]"),
        (Sum("delay", low=1), "statements[0].low"),
    ):
        with pytest.raises(InvalidArgument) as refused:
            compile_workload([statement], schema)
        assert refused.value.field == field
    with pytest.raises(InvalidArgument, match="which is added up"):
        Sum("delay", ("children", "delay"))


def test_weights_of_nothing_count_nobody() -> None:
    assert AxisWeights(0, (0, 0)).counted == 0
