"""Dates in CSV and Parquet: every type of column, ISO 8601 in text, and the machine's time zone."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema
from equipoise_server.datasets.source import source_at

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DATES = Schema(
    (Attribute("a", ("before", "1970", "none"), (-86_400.0, 0.0, 31_536_000.0), missing="none", dates=True),)
)
# The last instant before an edge, as exactly as the kind of column can say it, and the edge itself.
MOMENTS = (EPOCH - timedelta(microseconds=1), EPOCH, None)


@pytest.mark.parametrize(
    "kind",
    [pa.date32(), pa.date64(), pa.string(), *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns"))]
    + [pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in ("UTC", "America/New_York")],
    ids=str,
)
def test_bins_hold_dates_of_every_type(tmp_path: Path, kind: pa.DataType) -> None:
    values = pa.array(MOMENTS, pa.timestamp("us", "UTC"))
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp(kind.unit, "UTC"), safe=False)
        # A cast rounds towards 0, not down: the second before the edge is said outright.
        values = pa.array([EPOCH - timedelta(seconds=1), *values.to_pylist()[1:]], values.type).cast(kind)
    else:
        values = pa.array([each and each.date() for each in MOMENTS], pa.date32()).cast(kind)
    pq.write_table(pa.table({"a": values}), tmp_path / "t.parquet")
    assert source_at(tmp_path / "t.parquet").counts(DATES).dense().tolist() == [1, 1, 1]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_the_last_instant_before_an_edge_is_before_it(tmp_path: Path, unit: str) -> None:
    instants = pa.array([-1, 0, 31_536_000 * (10**9 if unit == "ns" else 10**6) - 1]).cast(pa.timestamp(unit))
    pq.write_table(pa.table({"a": instants}), tmp_path / "t.parquet")
    assert source_at(tmp_path / "t.parquet").counts(DATES).dense().tolist() == [1, 2, 0]


def test_dates_in_text_are_iso_8601(tmp_path: Path) -> None:
    before = ["1969-12-31", "1969-12-31T00:00", "1969-12-31 23:59:59.999999999", "1970-01-01T01:59+02:00"]
    within = [
        "1970-01-01",
        "1970-01-01 00:00Z",
        "1969-12-31T20:30:00-0330",
        "1970-12-31T23:59:59.9",
        '"1970-06-01"',
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a", *before, *within, "NA", ""]))
    assert source_at(path).counts(DATES).dense().tolist() == [len(before), len(within), 1]


def test_what_is_no_date_is_refused_in_bins_of_dates(tmp_path: Path) -> None:
    wrong = ["1/2/1970", "1970-2-1", "1970-02-30", "19700102", "1970", "5", "infinity", "epoch", "1970-01-01T24:00"]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a", *wrong, " 1970-01-01", "1971-01-01", "1969-12-30", ""]))
    with pytest.raises(InvalidArgument) as caught:
        source_at(path).counts(DATES)
    assert caught.value.problem == f"attribute a: {len(wrong) + 1} not dates in ISO 8601, 2 out of range"
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "t.parquet")
    with pytest.raises(InvalidArgument, match="attribute a: 2 not dates"):
        source_at(tmp_path / "t.parquet").counts(DATES)


def test_the_machine_s_time_zone_changes_no_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(
        pa.table({"a": pa.array([-1, 0], pa.timestamp("us", "UTC")), "b": ["1969-12-31T23:59:59", "1970-01-01"]}),
        tmp_path / "t.parquet",
    )
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    try:
        for name in ("a", "b"):
            schema = Schema((Attribute(name, ("before", "1970"), (-86_400.0, 0.0, 1.0), dates=True),))
            assert source_at(tmp_path / "t.parquet").counts(schema).dense().tolist() == [1, 1]
    finally:
        monkeypatch.undo()
        time.tzset()
