"""The schema's rules, on codes instead of files."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise_server.datasets.coded_counts import CodedCounts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.datasets.universe import BELOW, MAX_AXES, MISSING, UNKNOWN, build_counts

EDGES = (0.0, 10.0, 20.0)


def histogram(attribute: Attribute, codes: list[int]) -> list[int]:
    counts = np.array([1, 10, 100, 1000, 10000], dtype=np.int64)[: len(codes)]
    result = build_counts(Schema((attribute,)), [np.array(codes, dtype=np.int64)], counts).dense()
    return [int(count) for count in result]


def test_each_group_is_counted_in_its_cell() -> None:
    schema = Schema((Attribute("a", ("x", "y")), Attribute("b", ("p", "q", "r"))))
    codes = [np.array([0, 1, 1, 0]), np.array([2, 0, 0, 2])]
    assert build_counts(schema, codes, np.array([1, 2, 3, 4])).dense().tolist() == [0, 0, 5, 5, 0, 0]


def test_rules_say_where_missing_and_unknown_values_go() -> None:
    labels = Attribute("a", ("x", "y", "none"), missing="none", unknown="x")
    assert histogram(labels, [MISSING, UNKNOWN, 1]) == [10, 100, 1]
    clamped = Attribute("a", bin_labels(EDGES), EDGES, clamp=True)
    assert histogram(clamped, [BELOW, 0, 1, 2]) == [11, 1100]
    binned = Attribute("a", (*bin_labels(EDGES), "none", "other"), EDGES, missing="none", unknown="other")
    assert histogram(binned, [BELOW, 0, UNKNOWN, 2, MISSING]) == [10, 0, 10000, 1101]


@pytest.mark.parametrize(
    ("attribute", "code", "problem"),
    [
        (Attribute("a", ("x",)), MISSING, "1 null"),
        (Attribute("a", ("x", "y"), missing="y"), UNKNOWN, "1 unknown category"),
        (Attribute("a", bin_labels(EDGES), EDGES), BELOW, "1 out of range"),
        (Attribute("a", bin_labels(EDGES), EDGES), 2, "1 out of range"),
        (Attribute("a", bin_labels(EDGES), EDGES, clamp=True), UNKNOWN, "1 not a number"),
        (Attribute("a", bin_labels(EDGES), EDGES, clamp=True), MISSING, "1 null"),
    ],
)
def test_without_a_rule_they_are_refused(attribute: Attribute, code: int, problem: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        histogram(attribute, [code])
    assert caught.value.field == "table"
    assert caught.value.problem == f"attribute a: {problem}"


def test_refusals_are_counted_by_attribute() -> None:
    schema = Schema((Attribute("carrier", ("AA",)), Attribute("delay", bin_labels(EDGES), EDGES)))
    codes = [np.array([MISSING, UNKNOWN, 0, 0]), np.array([0, 1, BELOW, 2])]
    with pytest.raises(InvalidArgument) as caught:
        build_counts(schema, codes, np.array([3, 2000, 4, 1]))
    assert caught.value.problem == (
        "attribute carrier: 3 nulls, 2,000 unknown categories; attribute delay: 5 out of range"
    )


@pytest.mark.slow
def test_what_can_be_enumerated_is_a_histogram_and_what_cannot_distinct_records() -> None:
    for wide, kind in ((26, DenseCounts), (27, CodedCounts)):
        schema = Schema(tuple(Attribute(f"a{number}", ("0", "1")) for number in range(wide)))
        codes = [np.array([0, 1, 0])] * wide
        counts = build_counts(schema, codes, np.array([2, 5, 1]))
        assert isinstance(counts, kind)
        assert (counts.universe_size, counts.records) == (2**wide, 8)
        blocks = [(codes.tolist(), sizes.tolist()) for codes, sizes in counts.occupied()]
        assert blocks == [([[0] * wide, [1] * wide], [3, 5])]


def test_more_attributes_than_arrays_have_axes_are_no_histogram() -> None:
    schema = Schema((*(Attribute(f"a{number}", ("0",)) for number in range(MAX_AXES)), Attribute("b", ("0", "1"))))
    counts = build_counts(schema, [np.array([0, 0])] * MAX_AXES + [np.array([0, 1])], np.array([2, 5]))
    assert isinstance(counts, CodedCounts)
    assert [(axes, table.tolist()) for axes, table in counts.marginals([(MAX_AXES,)])] == [((MAX_AXES,), [2, 5])]


def test_rules_hold_for_distinct_records_too() -> None:
    labels = Attribute("a", ("x", "y", "none"), missing="none", unknown="x")
    many = tuple(Attribute(f"b{number}", tuple("0123456789")) for number in range(9))
    codes = [np.array([MISSING, UNKNOWN, 2]), *[np.array([4, 4, 4])] * 9]
    counts = build_counts(Schema((labels, *many)), codes, np.array([1, 2, 4]))
    assert [(records[:, 0].tolist(), sizes.tolist()) for records, sizes in counts.occupied()] == [([0, 2], [2, 5])]
    with pytest.raises(InvalidArgument, match="attribute b0: 4 unknown categories"):
        build_counts(
            Schema((labels, *many)), [codes[0], np.array([1, 1, UNKNOWN]), *codes[2:]], np.array([1, 2, 4])
        )
