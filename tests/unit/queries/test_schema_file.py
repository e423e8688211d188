"""Schema files whose labels are in a lookup file, or whose edges are days, months or years."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.errors import InvalidArgument
from equipoise.queries.dates import seconds_of
from equipoise.queries.schema import Schema
from equipoise.queries.schema_file import read_schema_file

AIRPORTS = 'name,iata\nKennedy,JFK\n"O\'Hare, Chicago",ORD\n\nNamibia,NA\n'


def read(directory: Path, **attribute: object) -> Schema:
    """The schema of a file with one attribute, beside which the lookup files lie."""
    (directory / "lists").mkdir(exist_ok=True)
    (directory / "lists" / "airports.csv").write_text(AIRPORTS)
    (directory / "lists" / "tabs.tsv").write_text("iata\tname\nJFK\tKennedy, New York\n")
    (directory / "lists" / "empty.csv").write_text("name,iata\nKennedy\n")
    (directory / "lists" / "twice.csv").write_text("iata,iata\nJFK,JFK\n")
    (directory / "lists" / "latin.csv").write_bytes(b"iata\nZ\xfcrich\n")
    (directory / "lists" / "regions.csv").write_text("code,region\nCA,west\nNY,east\nAL,east\n")
    (directory / "lists" / "again.csv").write_text("iata,name\nJFK,Kennedy\nJFK,Idlewild\n")
    (directory / "lists" / "crossed.csv").write_text("iata,name\nA,B\nB,C\n")
    (directory / "lists" / "damaged.csv").write_text('iata\n"JF"K\n')
    path = directory / "schema.json"
    path.write_text(json.dumps({"version": 1, "attributes": [{"name": "x", **attribute}]}))
    return read_schema_file(path)


def lookup(file: str, column: str = "iata") -> dict[str, str]:
    return {"file": f"lists/{file}", "column": column}


def dates(first: str, last: str, by: str) -> dict[str, str]:
    return {"from": first, "to": last, "by": by}


def test_labels_are_those_of_a_column_in_the_order_of_its_file(tmp_path: Path) -> None:
    (found,) = read(tmp_path, categories=lookup("airports.csv"), unknown="elsewhere").attributes
    assert found.categories == ("JFK", "ORD", "NA", "elsewhere")
    (named,) = read(tmp_path, categories=lookup("airports.csv", "name")).attributes
    assert named.categories == ("Kennedy", "O'Hare, Chicago", "Namibia")
    assert read(tmp_path, categories=lookup("tabs.tsv", "name")).sizes == (1,)


def test_the_table_has_codes_where_the_file_says_their_labels(tmp_path: Path) -> None:
    named = lookup("airports.csv") | {"label": "name"}
    (found,) = read(tmp_path, categories=named, missing="nowhere", unknown="elsewhere").attributes
    assert found.categories == ("Kennedy", "O'Hare, Chicago", "Namibia", "nowhere", "elsewhere")
    assert found.codes == (("JFK", "Kennedy"), ("NA", "Namibia"), ("ORD", "O'Hare, Chicago"))
    (again,) = Schema.from_json(Schema((found,)).to_json()).attributes
    assert again == found
    # A label that several codes have is one category.
    (one,) = read(tmp_path, categories={**lookup("regions.csv", "code"), "label": "region"}).attributes
    assert (one.categories, one.codes) == (("west", "east"), (("AL", "east"), ("CA", "west"), ("NY", "east")))


@pytest.mark.parametrize(
    ("edges", "size", "first", "last"),
    [
        (dates("2012-01-01", "2013-01-01", "day"), 366, "2012-01-01", "2012-12-31"),
        (dates("2013-01-01", "2015-01-01", "month"), 24, "2013-01", "2014-12"),
        (dates("1999-01-01", "2003-01-01", "year"), 4, "1999", "2002"),
        (dates("2013-11-15", "2014-02-15", "month"), 3, "[2013-11-15, 2013-12-15)", "[2014-01-15, 2014-02-15)"),
        (dates("2013-07-01", "2015-07-01", "year"), 2, "[2013-07-01, 2014-07-01)", "[2014-07-01, 2015-07-01)"),
    ],
)
def test_edges_are_every_day_month_or_year(
    tmp_path: Path, edges: dict[str, str], size: int, first: str, last: str
) -> None:
    (found,) = read(tmp_path, edges=edges).attributes
    assert (found.bins, found.size, found.dates) == (size, size, True)
    assert (found.categories[0], found.categories[-1]) == (first, last)
    assert (found.edges[0], found.edges[-1]) == (seconds_of("x", edges["from"]), seconds_of("x", edges["to"]))
    assert all(low < high for low, high in zip(found.edges, found.edges[1:], strict=False))


def test_rules_and_labels_of_one_s_own_stay(tmp_path: Path) -> None:
    edges = dates("2013-01-01", "2013-03-01", "month")
    (found,) = read(tmp_path, edges=edges, missing="never", clamp=True).attributes
    assert (found.categories, found.missing, found.clamp) == (("2013-01", "2013-02", "never"), "never", True)
    (named,) = read(tmp_path, edges=edges, categories=["January", "February"]).attributes
    assert named.categories == ("January", "February")


def test_what_is_registered_depends_on_no_other_file(tmp_path: Path) -> None:
    for key, value in (("categories", lookup("airports.csv")), ("edges", dates("2013-01-01", "2014-01-01", "day"))):
        schema = read(tmp_path, **{key: value})
        assert Schema.from_json(schema.to_json()) == schema


def test_files_of_other_forms_are_read_as_ever(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"a": 3}')
    assert read_schema_file(tmp_path / "schema.json").sizes == (3,)


@pytest.mark.parametrize(
    ("attribute", "problem"),
    [
        ({"categories": lookup("nowhere.csv")}, "nowhere.csv: cannot be read: No such file or directory"),
        ({"categories": lookup("latin.csv")}, "latin.csv: is not UTF-8 text"),
        ({"categories": lookup("damaged.csv")}, "categories.file: lists/damaged.csv is damaged, or no CSV"),
        (
            {"categories": lookup("airports.csv", "icao")},
            "categories.column: lists/airports.csv has no column",
        ),
        ({"categories": lookup("twice.csv")}, "categories.column: lists/twice.csv has 2 columns named 'iata'"),
        ({"categories": lookup("empty.csv")}, "categories: row 2 of lists/empty.csv: is empty"),
        ({"categories": {"file": "lists/airports.csv"}}, "categories.column: is empty"),
        ({"categories": lookup("again.csv") | {"label": "name"}}, "categories: has the code 'JFK' twice"),
        (
            {"categories": lookup("again.csv") | {"label": "town"}},
            "categories.label: lists/again.csv has no column",
        ),
        (
            {"categories": lookup("crossed.csv") | {"label": "name"}},
            "codes: say that 'B' stands for 'C', but a category is called so",
        ),
        ({"categories": {**lookup("airports.csv"), "skip": 1}}, "categories: has an unknown key 'skip'"),
        ({"edges": dates("2013-01-01", "2013-06-15", "month")}, "edges.to: must be a whole number of months after"),
        ({"edges": dates("2013-01-01", "2013-01-01", "day")}, "edges.to: must be a whole number of days after"),
        ({"edges": dates("2014-01-01", "2013-01-01", "day")}, "edges.to: must be a whole number of days after"),
        ({"edges": dates("9000-01-01", "9999-12-31", "year")}, "edges.to: must be a whole number of years after"),
        ({"edges": dates("0001-01-01", "9999-01-01", "day")}, "edges: are more than 65,536"),
        ({"edges": dates("2013-01-31", "2014-01-31", "month")}, "edges.from: must be one of the first 28 days"),
        ({"edges": dates("2013-01-01", "2014-01-01", "week")}, "edges.by: must be one of day, month, year"),
        ({"edges": dates("January", "2014-01-01", "day")}, "edges.from: is 'January', no date such as"),
        ({"edges": {"from": 2013, "to": "2014-01-01", "by": "day"}}, "edges.from: must be a string"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, attribute: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        read(tmp_path, **attribute)
    assert problem in str(refused.value)
