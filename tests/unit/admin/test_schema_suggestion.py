"""Suggested schemas: every table fits the one that is suggested for it, and edges are round."""

from __future__ import annotations

import math
from datetime import date
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from harness.stores import Cluster
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool
from typer.testing import CliRunner

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise.queries.schema_checks import edge_text
from equipoise_server.admin.schema_suggestion import MAX_BINS, round_edges, schema_of, suggest_schema
from equipoise_server.cli import app
from equipoise_server.datasets.source import source_at

HEADER = "carrier,delay,month,price,day,flown,id,empty"
ROWS = [
    f"{'AA' if row % 3 else 'é'},{row * 0.33 - 20:.2f},{row % 12 + 1},{'' if row % 7 else row % 1000},"
    f"2013-{row % 9 + 1:02}-28,{('True', 'False')[row % 2]},id{row},"
    for row in range(1100)
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return path


def test_a_table_fits_the_schema_that_is_suggested_for_it(table: Path) -> None:
    suggestions = suggest_schema(table)
    schema = Schema.from_json(schema_of(suggestions).to_json())
    assert source_at(table).counts(schema).records == len(ROWS)
    sizes = dict(zip(schema.names, schema.sizes, strict=True))
    assert sizes == {"carrier": 2, "delay": 8, "month": 12, "price": 11, "day": 9, "flown": 2}
    assert {each.column: each.reason for each in suggestions if each.attribute is None} == {
        "id": "more than 1000 labels",
        "empty": "no values",
    }
    assert schema.attribute("month").categories == tuple(str(month + 1) for month in range(12))
    assert schema.attribute("month").is_ordered
    assert [edge_text(edge) for edge in schema.attribute("delay").edges] == [str(50 * i) for i in range(-1, 8)]
    assert [edge_text(edge, True) for edge in schema.attribute("day").edges][::9] == ["2013-01-01", "2013-10-01"]
    assert schema.attribute("price").missing == "missing"


def test_other_kinds_of_sources_are_looked_at_alike(tmp_path: Path, postgresql: Cluster) -> None:
    columns = {
        "month": pa.array([1, 2, 12, None], pa.int32()),
        "price": pa.array([0.5, math.nan, math.inf, 900.0]),
        "day": pa.array([date(1969, 12, 31), date(1970, 1, 1), None, date(2020, 2, 29)]),
        "flown": [True, False, True, None],
    }
    pq.write_table(pa.table(columns), tmp_path / "p.parquet")
    with postgresql.database(tmp_path) as url:
        with create_engine(url, poolclass=NullPool).begin() as connection:
            connection.execute(
                text(
                    "CREATE TABLE p AS SELECT * FROM (VALUES (1, 0.5::float8, date '1969-12-31', true), "
                    "(2, 'NaN', '1970-01-01', false), (12, 'Infinity', NULL, true), "
                    "(NULL, 900, '2020-02-29', NULL)) AS t(month, price, day, flown)"
                )
            )
        (tmp_path / "p.database.toml").write_text(f'url = "{url}"\ntable = "p"\n')
        of_table = schema_of(suggest_schema(tmp_path / "p.database.toml"))
        assert of_table == schema_of(suggest_schema(tmp_path / "p.parquet"))
        assert source_at(tmp_path / "p.database.toml").counts(of_table).records == 4
    assert source_at(tmp_path / "p.parquet").counts(of_table).records == 4


@pytest.mark.slow
@given(st.floats(-1e9, 1e9), st.floats(0, 1e9))
def test_edges_are_few_ascending_and_about_all_values(low: float, width: float) -> None:
    high = low + width
    edges = round_edges(low, high)
    assert edges[0] <= low
    assert high < edges[-1]
    assert 1 <= len(edges) - 1 <= MAX_BINS
    assert all(first < second for first, second in pairwise(edges))


@pytest.mark.parametrize("label", ["", "x" * 300, "a\tb"])
def test_labels_that_no_schema_can_have_are_left_out(tmp_path: Path, label: str) -> None:
    pq.write_table(pa.table({"a": [label], "b": ["missing"]}), tmp_path / "t.parquet")
    assert schema_of(suggest_schema(tmp_path / "t.parquet")).names == ("b",)


def test_what_a_table_says_is_printed_as_it_is(tmp_path: Path) -> None:
    """Whoever made the table may not have been friendly: no word of it is markup, or obeyed by a terminal."""
    labels = ["[red]x[/red]", "[/]", "[link=http://127.0.0.1]y[/link]"]
    columns = {"a\x1b[2J\u202e": [1, 2, 3], "a[bold]": labels, "b": ["u", "v", "\u202ew"]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    place, schema = ("--table", str(tmp_path / "t.parquet")), str(tmp_path / "s.json")
    suggested = CliRunner().invoke(app, ["data", "suggest", *place, "--out", schema])
    checked = CliRunner().invoke(app, ["data", "check", *place, "--schema", schema])
    for done, words in ((suggested, ("a[bold]", r"a\x1b[2J\u202e")), (checked, labels)):
        assert done.exit_code == 0, done.output
        assert all(each.isprintable() for each in done.stdout.replace("\n", ""))
        assert all(each in done.stdout for each in words)


def test_a_table_without_a_column_to_suggest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n" + "".join(f"x{row}\n" for row in range(1001)))
    with pytest.raises(InvalidArgument, match="has no column that a schema could be suggested for"):
        schema_of(suggest_schema(tmp_path / "t.csv"))
    with pytest.raises(InvalidArgument, match="there is no such table"):
        suggest_schema(tmp_path / "nowhere.csv")


@pytest.mark.slow
def test_the_command_writes_a_file_once(table: Path, tmp_path: Path) -> None:
    command = ["data", "suggest", "--table", str(table), "--out", str(tmp_path / "schema.json")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "it will be public" in done.output
    check = ["data", "check", "--table", str(table), "--schema", str(tmp_path / "schema.json")]
    assert CliRunner().invoke(app, check).exit_code == 0
    again = CliRunner().invoke(app, command)
    assert again.exit_code != 0


def test_labels_of_a_lookup_file_stand_for_the_codes_of_the_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("carrier,state\nAA,CA\nUA,\nXX,NY\n")
    (tmp_path / "carriers.csv").write_text("code,name\nAA,American\nUA,United\nDL,Delta\n")
    (tmp_path / "states.csv").write_text("code,region\nCA,west\nNY,east\nAL,east\n")
    out = tmp_path / "schema.json"
    lookups = [f"--lookup={column}={tmp_path / column}s.csv" for column in ("carrier", "state")]
    command = ["data", "suggest", "--table", str(tmp_path / "t.csv"), "--out", str(out), *lookups]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "labels of its lookup file, and 1 others" in done.output
    carrier, state = Schema.from_json(out.read_text()).attributes
    assert (carrier.categories, carrier.unknown) == (("American", "United", "Delta", "other"), "other")
    assert (state.categories, state.missing, state.unknown) == (("west", "east", "missing"), "missing", "")
    counts = source_at(tmp_path / "t.csv").counts(Schema((carrier, state))).dense()
    assert counts.reshape(4, 3).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("lookup", ["carrier=nowhere.csv", "carrier=short.csv", "absent=codes.csv", "carrier"])
def test_a_lookup_file_or_column_that_is_not_there_is_named(
    tmp_path: Path, lookup: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("carrier\nAA\n")
    (tmp_path / "short.csv").write_text("code\nAA\n")
    (tmp_path / "codes.csv").write_text("code,name\nAA,American\n")
    command = ["data", "suggest", "--table", "t.csv", "--out", "schema.json", "--lookup", lookup]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1
    assert "lookup" in str(done.exception) or "nowhere.csv" in str(done.exception)
    assert not (tmp_path / "schema.json").exists()


@pytest.mark.parametrize(
    ("first", "last", "names"),
    [
        ("2013-02-27", "2013-03-02", ["2013-02-27", "2013-02-28", "2013-03-01", "2013-03-02"]),
        ("2013-11-03", "2014-02-01", ["2013-11", "2013-12", "2014-01", "2014-02"]),
        ("2010-05-01", "2012-03-03", ["[2010-04-01, 2010-07-01)", "[2012-01-01, 2012-04-01)"]),
        ("2001-05-01", "2006-03-03", ["2001", "2002", "2003", "2004", "2005", "2006"]),
    ],
)
def test_dates_get_days_months_or_years(tmp_path: Path, first: str, last: str, names: list[str]) -> None:
    (tmp_path / "t.csv").write_text(f"day\n{first}\n{last}\n")
    (day,) = schema_of(suggest_schema(tmp_path / "t.csv")).attributes
    shown = list(day.categories) if day.size == len(names) else [day.categories[0], day.categories[-1]]
    assert shown == names
