"""Dates as edges: what is one, which second it stands for, and how schemas and conditions write it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InvalidArgument
from equipoise.queries.dates import date_text, seconds_of
from equipoise.queries.predicates import Interval, attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import CappedSum, Quantile
from equipoise.queries.statements.quantile import QUANTILE
from equipoise.queries.statements_file import statement_from_json
from equipoise.queries.workload_compiler import compile_statistic, compile_workload
from equipoise.wire.workloads import schema_from_message, schema_to_message

DAY = 86_400.0
SCHEMA = Schema.from_json(
    '{"version": 1, "attributes": [{"name": "day", "edges": ["1969-12-31", "1970-01-02", "1970-01-03T12:00"]}]}'
)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("1970-01-01", 0.0),
        ("1969-12-31", -DAY),
        ("1970-01-02T00:00:01", DAY + 1),
        ("1970-01-01 01:30", 5400.0),
        ("1970-01-01T00:00Z", 0.0),
        ("1970-01-01T02:00:00+02:00", 0.0),
        ("1969-12-31T20:30-0330", 0.0),
        ("0001-01-01", -62_135_596_800.0),
        ("9999-12-31T23:59:59", 253_402_300_799.0),
        (date(1970, 1, 2), DAY),
        (datetime(1970, 1, 1, 1), 3600.0),  # without an offset: UTC
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0.0),
    ],
)
def test_a_date_stands_for_a_second(written: str | date, seconds: float) -> None:
    assert seconds_of("day", written) == seconds


@pytest.mark.parametrize(
    "written",
    [
        *(
            "",
            "1970",
            "19700101",
            "1970-1-1",
            "1970-02-30",
            "1970-01-01T24:00",
            "1970-01-01T00:00:60",
            "01/01/1970",
        ),
        *("1970-01-01+02", "1970-W01-1", " 1970-01-01", "1970-01-01T1:00", "\u0661970-01-01", "today", "15"),
    ],
)
def test_what_is_no_date_is_refused_by_name(written: str) -> None:
    with pytest.raises(InvalidArgument, match=r"day: is '.*', no date in ISO 8601 such as"):
        seconds_of("day", written)


def test_edges_are_whole_seconds_of_four_digit_years() -> None:
    for each in ("1970-01-01T00:00:00.5", datetime(1970, 1, 1, microsecond=1, tzinfo=UTC)):
        with pytest.raises(InvalidArgument, match="day: has a fraction of a second"):
            seconds_of("day", each)
    with pytest.raises(InvalidArgument, match="day: must be a whole second of the years 1 to 9999"):
        seconds_of("day", "0001-01-01T00:00+01:00")
    for edge in (0.5, 1e12):
        with pytest.raises(InvalidArgument, match=r"edges\[1\]: must be a whole second of the years 1 to 9999"):
            Attribute("day", ("a",), (-1.0, edge), dates=True)
    with pytest.raises(InvalidArgument, match="dates: are for attributes with edges only"):
        Attribute("day", ("a",), dates=True)


@given(st.datetimes().map(lambda each: each.replace(microsecond=0)))
def test_dates_are_read_as_they_are_written(moment: datetime) -> None:
    seconds = seconds_of("day", moment)
    assert seconds_of("day", date_text(seconds)) == seconds


def test_a_schema_keeps_its_dates_in_files_and_messages() -> None:
    day = SCHEMA.attribute("day")
    assert day.edges == (-DAY, DAY, 2.5 * DAY)
    assert day.categories == ("[1969-12-31, 1970-01-02)", "[1970-01-02, 1970-01-03T12:00)")
    assert '"1969-12-31"' in SCHEMA.to_json()
    assert Schema.from_json(SCHEMA.to_json()) == SCHEMA
    assert schema_from_message(schema_to_message(SCHEMA)) == SCHEMA


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ('["1970-01-01", 5]', r"attributes\[0\].edges\[1\]: must be a date, as the first edge is"),
        ('["1970-01-01", "1970-02-30"]', r"attributes\[0\].edges\[1\]: is '1970-02-30', no date"),
        ('["1970-01-02", "1970-01-01"]', r"attributes\[0\].edges\[1\]: must be above the edge before it"),
        ('["1970-01-01"]', r"attributes\[0\].edges: must be at least two"),
    ],
)
def test_edges_that_are_no_dates_are_refused_by_name(edges: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Schema.from_json(f'{{"version": 1, "attributes": [{{"name": "day", "edges": {edges}}}]}}')


def test_conditions_are_written_with_dates() -> None:
    later = Interval("day", DAY, float("inf"))
    assert later == (attribute("day") >= "1970-01-02") == (attribute("day") >= date(1970, 1, 2))
    assert attribute("day").between("1969-12-31", "1970-01-03T12:00") == Interval("day", -DAY, 2.5 * DAY)
    assert statement_from_json('{"interval": {"attribute": "day", "low": "1970-01-02", "high": null}}') == later
    assert compile_workload([later], SCHEMA).query_count == 1
    with pytest.raises(InvalidArgument, match=r"its edges are 1969-12-31, 1970-01-02, 1970-01-03T12:00"):
        compile_workload([attribute("day") < "1970-01-01"], SCHEMA)
    with pytest.raises(InvalidArgument, match=r"statement\.interval\.low: is 'May', no date"):
        statement_from_json('{"interval": {"attribute": "day", "low": "May", "high": null}}')


def test_statistics_of_dates_are_dates_or_refused() -> None:
    assert QUANTILE.meaning(Quantile("day", 0.5, 0.1), 0.5, SCHEMA) == "at 1970-01-01T18:00"
    with pytest.raises(InvalidArgument, match="attribute: 'day' holds dates, which have no sum"):
        compile_statistic(CappedSum("day", DAY), SCHEMA, "statements[0]")
