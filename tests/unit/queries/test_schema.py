"""Schemas: the file format, its round trip, and a named field for everything malformed."""

from __future__ import annotations

import json

import pytest

from equipoise.commands.columns import in_words
from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import MAX_CATEGORIES, bin_labels

FLIGHTS = """
{"version": 1, "attributes": [
  {"name": "carrier", "categories": ["AA", "UA"], "unknown": "other"},
  {"name": "dep_delay", "edges": [-60, 0, 15, 60.5], "clamp": true, "missing": "cancelled"},
  {"name": "hour", "edges": [0, 12, 24], "categories": ["morning", "evening"]}
]}
"""


def test_the_format_of_the_docstring() -> None:
    schema = Schema.from_json(FLIGHTS)
    assert schema.names == ("carrier", "dep_delay", "hour")
    assert schema.sizes == (3, 4, 2)
    assert schema.universe_size == 24
    assert schema.attribute("carrier").categories == ("AA", "UA", "other")
    delay = schema.attribute("dep_delay")
    assert delay.categories == ("[-60, 0)", "[0, 15)", "[15, 60.5)", "cancelled")
    assert (delay.bins, delay.clamp, delay.missing) == (3, True, "cancelled")
    assert schema.attribute("hour").index("evening") == 1


def test_what_is_written_is_read_back() -> None:
    schema = Schema.from_json(FLIGHTS)
    assert Schema.from_json(schema.to_json()) == schema


def test_attributes_with_edges_are_ordered_unless_they_say_otherwise() -> None:
    attributes = [
        {"name": "grade", "categories": ["a", "b", "c"], "ordered": True},
        {"name": "colour", "categories": ["red", "blue"]},
        {"name": "hour", "edges": [0, 12, 24]},
        {"name": "code", "edges": [0, 1, 2], "ordered": False},
    ]
    schema = Schema.from_json(json.dumps({"version": 1, "attributes": attributes}))
    assert schema.ordered == (0, 2)
    assert [each.ordered for each in schema.attributes] == [True, None, None, False]
    assert Schema.from_json(schema.to_json()) == schema
    # What does not say it is written as before.
    assert "ordered" not in Schema.from_json(FLIGHTS).to_json()
    assert Schema.from_json(FLIGHTS).ordered == (1, 2)


def test_sizes_are_short_for_coded_columns() -> None:
    schema = Schema.from_json('{"sex": 2, "age": 10}')
    assert schema.names == ("sex", "age")
    assert schema.attribute("age").categories == tuple("0123456789")
    assert Schema.from_json(schema.to_json()) == schema


def test_bin_labels_keep_every_digit() -> None:
    assert bin_labels((0, 0.1, 1e20)) == ("[0, 0.1)", "[0.1, 1e+20)")
    close = (1.0, 1.0000000000000002, 2.0)
    assert len(set(bin_labels(close))) == 2


def test_unknown_names_are_refused() -> None:
    schema = Schema.from_json(FLIGHTS)
    with pytest.raises(InvalidArgument, match="no attribute 'origin'"):
        schema.attribute("origin")
    with pytest.raises(InvalidArgument, match="attribute carrier: has no category 'DL'"):
        schema.attribute("carrier").index("DL")


def test_codes_stand_for_categories_by_which_people_ask() -> None:
    codes = {"9": "missing", "M": "male", "F": "female", "1": "male"}
    (sex,) = Schema.from_json(document(codes)).attributes
    assert sex.categories == ("male", "female", "missing")
    assert sex.codes == (("1", "male"), ("9", "missing"), ("F", "female"), ("M", "male"))
    assert Schema.from_json(Schema((sex,)).to_json()) == Schema.from_json(document(codes))
    assert in_words(sex) == "sex: male (1, M), female (F), missing (9); missing values count as missing"
    with pytest.raises(InvalidArgument, match="has no category 'F'; it is called 'female'"):
        sex.index("F")
    with pytest.raises(InvalidArgument, match="ascending"):
        Attribute("sex", ("male", "female"), codes=(("M", "male"), ("F", "female")))


def document(codes: dict[str, str]) -> str:
    sex = {"name": "sex", "categories": ["male", "female"], "missing": "missing", "codes": codes}
    return json.dumps({"version": 1, "attributes": [sex]})


def one(**parts: object) -> str:
    return json.dumps({"version": 1, "attributes": [{"name": "fine", "categories": ["x"]}, parts]})


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "schema"),
        ("[]", "schema"),
        ("{}", "schema.attributes"),
        ("[" * 100_000, "schema"),
        ('{"version": 2, "attributes": []}', "schema.version"),
        ('{"version": true, "attributes": []}', "schema.version"),
        ('{"attributes": []}', "schema.version"),
        ('{"version": 1}', "schema.attributes"),
        ('{"version": 1, "attributes": {}}', "schema.attributes"),
        ('{"version": 1, "attributes": []}', "schema.attributes"),
        ('{"version": 1, "attributes": [], "more": 1}', "schema"),
        ('{"version": 1, "attributes": [7]}', "schema.attributes[0]"),
        ('{"version": 1, "version": 1, "attributes": []}', "schema"),
        ('{"age": 0}', "schema.age"),
        ('{"age": true}', "schema.age"),
        ('{"age": 1000000000000}', "schema.age"),
        (one(categories=["x"]), "schema.attributes[1].name"),
        (one(name="", categories=["x"]), "schema.attributes[1].name"),
        (one(name=7, categories=["x"]), "schema.attributes[1].name"),
        (one(name="fine", categories=["x"]), "schema.attributes[1].name"),
        (one(name="a\nb", categories=["x"]), "schema.attributes[1].name"),
        (one(name="\ud800", categories=["x"]), "schema.attributes[1].name"),
        (one(name="a"), "schema.attributes[1]"),
        (one(name="a", categories=[]), "schema.attributes[1].categories"),
        (one(name="a", categories="xy"), "schema.attributes[1].categories"),
        (one(name="a", categories=["x", 1]), "schema.attributes[1].categories[1]"),
        (one(name="a", categories=["x", ""]), "schema.attributes[1].categories[1]"),
        (one(name="a", categories=["x", "x"]), "schema.attributes[1].categories"),
        (one(name="a", categories=["x" * 300]), "schema.attributes[1].categories[0]"),
        (one(name="a", categories=["x"], missing=""), "schema.attributes[1].missing"),
        (one(name="a", categories=["x"], unknown=3), "schema.attributes[1].unknown"),
        (one(name="a", categories=["x"], clamp=True), "schema.attributes[1].clamp"),
        (one(name="a", categories=["x"], clamp="no"), "schema.attributes[1].clamp"),
        (one(name="a", categories=["x"], ordered=1), "schema.attributes[1].ordered"),
        (one(name="a", edges=[]), "schema.attributes[1].edges"),
        (one(name="a", edges=[1]), "schema.attributes[1].edges"),
        (one(name="a", edges=[1, 1]), "schema.attributes[1].edges[1]"),
        (one(name="a", edges=[1, "2"]), "schema.attributes[1].edges[1]"),
        (one(name="a", edges=[1, True]), "schema.attributes[1].edges[1]"),
        (one(name="a", edges=[1, float("inf")]), "schema"),
        (one(name="a", edges=[float("nan"), 1]), "schema"),
        (one(name="a", edges=[1, 10**400]), "schema.attributes[1].edges[1]"),
        (one(name="a", edges=[1, 2, 3], categories=["low"]), "schema.attributes[1].categories"),
        (one(name="a", edges=[1, 2], categories=["low", "high"]), "schema.attributes[1].categories"),
        (one(name="a", edges=[1, 2], clamp=True, unknown="other"), "schema.attributes[1].clamp"),
        (one(name="a", categories=["x"], codes=["x"]), "schema.attributes[1].codes"),
        (one(name="a", categories=["x"], codes={"1": 2}), "schema.attributes[1].codes['1']"),
        (one(name="a", categories=["x"], codes={"1": "y"}), "schema.attributes[1].codes"),
        (one(name="a", categories=["x"], codes={"": "x"}), "schema.attributes[1].codes"),
        (one(name="a", categories=["x", "y"], codes={"y": "x"}), "schema.attributes[1].codes"),
        (one(name="a", categories=["x", "n"], none="n", codes={"1": "n"}), "schema.attributes[1].codes"),
        (one(name="a", edges=[1, 2], codes={"1": "[1, 2)"}), "schema.attributes[1].codes"),
        (one(name="a", edges=[1, 2], colour="red"), "schema.attributes[1]"),
    ],
)
def test_malformed_schemas_name_the_field(text: str, field: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Schema.from_json(text)
    assert caught.value.field == field


def test_too_many_categories_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="categories"):
        Attribute("a", tuple(map(str, range(MAX_CATEGORIES + 1))))
