"""Schemas with a category for records of nothing, and predicates, which never count such records."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from equipoise.errors import InvalidArgument
from equipoise.queries.padding import padded_schema, schema_of_rows
from equipoise.queries.predicates import Predicate, attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise.wire.workloads import schema_from_message, schema_to_message

ROWS = Schema(
    (
        Attribute("good", ("book", "none"), unknown="none"),
        Attribute("price", ("[0, 10)", "[10, 20)", "lost"), (0.0, 10.0, 20.0), missing="lost"),
        Attribute("size", ("s", "m", "l"), ordered=True),
    )
)
PADDED = padded_schema(ROWS)
BOOK, CHEAP, LOST = attribute("good") == "book", attribute("price") < 10, attribute("price") == "lost"
SMALL = attribute("size").isin(["s", "m"])


def test_every_attribute_gets_one_more_category_which_travels() -> None:
    assert [each.none for each in PADDED.attributes] == ["none_", "none", "none"]
    assert PADDED.sizes == (3, 4, 4)
    assert padded_schema(PADDED) is PADDED
    assert schema_of_rows(PADDED) == ROWS == schema_of_rows(ROWS)
    assert Schema.from_json(PADDED.to_json()) == PADDED
    assert schema_from_message(schema_to_message(PADDED)) == PADDED
    named = Schema.from_json('{"version": 1, "attributes": [{"name": "a", "edges": [0, 1], "none": "no order"}]}')
    assert named.attributes[0].categories == ("[0, 1)", "no order")


@pytest.mark.parametrize(
    "predicate",
    [
        BOOK,
        ~BOOK,
        ~CHEAP,
        ~LOST,
        CHEAP | LOST,
        ~(BOOK & CHEAP),
        ~(BOOK | SMALL),
        ~BOOK & ~SMALL,
        ~BOOK | ~SMALL,
        BOOK | ~BOOK,
        ~(BOOK & ~BOOK),
        ~(~BOOK & ~CHEAP & ~SMALL),
        ~(CHEAP & ~(BOOK | SMALL)) | LOST,
    ],
)
def test_predicates_count_all_records_that_they_are_true_of_and_none_of_nothing(predicate: Predicate) -> None:
    compiled, own = compile_workload([predicate], PADDED), compile_workload([predicate], ROWS)
    for places in itertools.product(*(range(size) for size in ROWS.sizes)):
        padded, row = np.zeros(PADDED.universe_size, np.int64), np.zeros(ROWS.universe_size, np.int64)
        padded[np.ravel_multi_index(places, PADDED.sizes)] = 1
        row[np.ravel_multi_index(places, ROWS.sizes)] = 1
        assert compiled.counts(padded) == own.counts(row)
    nothing = np.zeros(PADDED.universe_size, np.int64)
    nothing[-1] = 1
    assert compiled.counts(nothing) == [0]


def test_marginals_have_a_cell_for_records_of_nothing_and_predicates_cannot_list_them() -> None:
    assert compile_workload([Marginal(("good", "size"))], PADDED).query_count == 12
    with pytest.raises(
        InvalidArgument, match=r"statements\[0\].categories: attribute price has records of nothing"
    ):
        compile_workload([attribute("price").isin(["lost", "none"])], PADDED)


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        (
            [{"name": "a", "categories": ["x"], "none": "n"}, {"name": "b", "categories": ["y"]}],
            r"\[1\].none: must be",
        ),
        ([{"name": "a", "categories": ["n", "x"], "none": "n"}], r"\[0\].none: must be the last category"),
        ([{"name": "a", "categories": ["x", "n"], "none": "n", "missing": "n"}], "that of no value"),
        ([{"name": "a", "categories": ["n"], "none": "n"}], "must be the last category of several"),
    ],
)
def test_a_category_of_nothing_that_makes_no_sense_is_refused(attributes: list[object], problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        Schema.from_json(json.dumps({"version": 1, "attributes": attributes}))
