"""A table with columns of every type, with values on and about each label and edge, for every kind of source."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.queries.dates import seconds_of
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels

NUMBERS = (-60.0, -0.5, 0.0, 0.1, 15.0, 1e6)
DAYS = tuple(seconds_of("edges", day) for day in ("1969-12-31", "1970-01-02T00:00:01", "2013-01-01", "2013-07-01"))


def binned(name: str, edges: tuple[float, ...], dates: bool = False) -> Attribute:
    labels = (*bin_labels(edges, dates), "none", "other")
    return Attribute(name, labels, edges, missing="none", unknown="other", dates=dates)


def listed(name: str, *labels: str, **codes: str) -> Attribute:
    coded = tuple(sorted((code.strip("_"), label) for code, label in codes.items()))
    return Attribute(name, (*labels, "none", "other"), missing="none", unknown="other", codes=coded)


SCHEMA = Schema(
    (
        listed("carrier", "AA", "'; DROP TABLE t; --", "é", "True", aa="AA"),
        binned("delay", NUMBERS),
        binned("price", NUMBERS),
        binned("seats", (0.0, 1.0, 2.0, 300.0)),
        listed("late", "True", "False"),
        listed("gate", "first or last", "12", "01", _1="first or last", _13="first or last"),
        binned("day", DAYS, dates=True),
        binned("left_at", DAYS, dates=True),
    )
)
# What each column has of every kind: labels, edges and what lies about them, missing values.
COLUMNS: dict[str, tuple[str, pa.DataType, list[object]]] = {
    "carrier": ("text", pa.string(), ["AA", "'; DROP TABLE t; --", "é", "true", "True", "aa", "", None]),
    "delay": (
        "double precision",
        pa.float64(),
        [-60.0, -60.1, -0.5, 0.0, 0.1, 0.09999, 1e6, 999999.9, float("nan"), float("inf"), -0.0, None],
    ),
    "price": ("numeric(9,2)", pa.decimal128(9, 2), [Decimal(x) for x in ("-60.01", "0.10", "0.09", "15")] + [None]),
    "seats": ("smallint", pa.int16(), [-1, 0, 1, 2, 299, 300, None]),
    "late": ("boolean", pa.bool_(), [True, False, None]),
    "gate": ("bigint", pa.int64(), [1, 12, 13, None]),
    "day": (
        "date",
        pa.date32(),
        [date(1969, 12, 30), date(1969, 12, 31), date(1970, 1, 1), date(2013, 1, 1), date(2013, 7, 1), None],
    ),
    "left_at": (
        "timestamptz",
        pa.timestamp("us", tz="UTC"),
        [datetime(1970, 1, 2, 0, 0, second, 999_999, UTC) for second in (0, 1)]
        + [datetime(2013, 6, 30, 23, 59, 59, 999_999, UTC), datetime(2013, 7, 1, tzinfo=UTC), None],
    ),
}
ROWS = [{name: values[row % len(values)] for name, (_, _, values) in COLUMNS.items()} for row in range(500)]


def write_parquet(path: Path, rows: list[dict[str, object]] = ROWS) -> None:
    """Write rows of the table into a Parquet file."""
    arrays = {name: pa.array([row[name] for row in rows], kind) for name, (_, kind, _) in COLUMNS.items()}
    pq.write_table(pa.table(arrays), path)
