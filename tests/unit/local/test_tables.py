"""A trial's table falls into the categories that a server would put it into, or is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.sql_tables import connect, random_rows, random_schema

from equipoise import Attribute, Client, Schema, compile_workload
from equipoise.errors import InvalidArgument
from equipoise.frames import Frame
from equipoise.local.dummy import UNLISTED, dummy_table
from equipoise.local.tables import records_of
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal
from equipoise_server.datasets.source import source_at

EDGES = (0.0, 0.1, 10.0)
SCHEMA = Schema(
    (
        Attribute("code", ("1", "2", "x", "rest"), unknown="rest"),
        Attribute("delay", (*bin_labels(EDGES), "none"), EDGES, missing="none", clamp=True),
    )
)
ROWS = {"code": [1, "2", "x", 2.0, True], "delay": [0, 0.1, None, -7.5, 1e9]}
CODES = [[0, 1, 2, 3, 3], [0, 1, 2, 0, 1]]


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_is_counted_as_a_server_counts_it(seed: int, suffix: str, tmp_path: Path) -> None:
    draw = random.Random(seed)
    schema = random_schema(draw)
    path = tmp_path / f"table{suffix}"
    with connect(random_rows(draw, schema)) as connection:
        connection.execute(f"COPY flights TO '{path}'")
    counts = np.bincount(records_of(path, schema).cells, minlength=schema.universe_size)
    assert counts.tolist() == source_at(path).counts(schema).dense().tolist()


@pytest.mark.parametrize("kind", ["columns", "frame", "pandas", "polars"])
def test_tables_come_in_any_of_the_usual_forms(kind: str) -> None:
    columns: dict[str, object] = {"code": ["1", "2", "x", "y", "true"], "other": [1] * 5}
    given: Callable[[Any], object] = {"columns": dict, "frame": Frame}.get(kind) or import_module(kind).DataFrame
    columns["delay"] = np.array(ROWS["delay"], float)
    assert records_of(given(columns), SCHEMA).codes.tolist() == CODES
    assert records_of(ROWS, SCHEMA).codes.tolist() == CODES


def test_dates_are_read_as_texts_days_and_moments() -> None:
    edges = (0.0, 86400.0, 172800.0)
    schema = Schema((Attribute("day", bin_labels(edges, True), edges, dates=True),))
    days = ["1970-01-02", date(1970, 1, 1), datetime(1970, 1, 2, 23, 59, 59, 999_999), "1970-01-01T12:00"]
    assert records_of({"day": days}, schema).codes.tolist() == [[1, 0, 1, 0]]
    with pytest.raises(InvalidArgument, match="no category"):
        records_of({"day": ["1970-01-03"]}, schema)
    with pytest.raises(InvalidArgument, match="no date"):
        records_of({"day": [5]}, schema)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"delay": [1]}, "code: is no column"),
        ({"code": [None], "delay": [1]}, "code: has missing values"),
        ({"code": ["1"], "delay": ["late"]}, "delay: has 'late', which is no number"),
        ({"code": ["1"], "delay": [1, 2]}, "different lengths"),
        ({"code": [], "delay": []}, "no records"),
        (5, "must be a file"),
        ("nowhere.csv", "nowhere.csv: cannot be read"),
        ("nowhere.parquet", "nowhere.parquet: cannot be read"),
    ],
)
def test_what_a_server_would_refuse_is_refused_by_its_name(table: object, said: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        Client.local(table, SCHEMA)
    assert said in f"{refusal.value.field}: {refusal.value.problem}"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_dummy_tables_hold_every_category_and_are_tables_that_a_server_takes(
    seed: int, suffix: str, tmp_path: Path
) -> None:
    schema = random_schema(random.Random(seed))
    frame = dummy_table(schema, 400, seed)
    assert frame.to_dicts() == dummy_table(schema, 400, seed).to_dicts() != dummy_table(schema, 400, 99).to_dicts()
    frame.write(tmp_path / f"dummy{suffix}")
    counts = source_at(tmp_path / f"dummy{suffix}").counts(schema)
    assert counts.records == 400
    workload = compile_workload([Marginal((name,)) for name in schema.names], schema)
    assert (counts.count(workload) > 0).all()
    assert counts.count(workload).tolist() == records_of(frame, schema).counts(workload).tolist()


def test_a_dummy_label_beyond_the_list_is_none_of_it() -> None:
    schema = Schema((Attribute("a", (UNLISTED, "rest"), unknown="rest"),))
    assert set(dummy_table(schema, 50)["a"]) == {UNLISTED, f"{UNLISTED}_"}
    with pytest.raises(InvalidArgument, match="records"):
        dummy_table(schema, 0)


def test_codes_of_the_table_are_read_and_dummy_tables_have_them(tmp_path: Path) -> None:
    labels = ("west", "east", "none", "other")
    codes = (("-1", "none"), ("AL", "east"), ("CA", "west"), ("NY", "east"))
    schema = Schema((Attribute("state", labels, missing="none", unknown="other", codes=codes),))
    rows = {"state": ["CA", "NY", "AL", "west", "-1", None, "??"]}
    assert records_of(rows, schema).codes[0].tolist() == [0, 1, 1, 0, 2, 2, 3]
    made = dummy_table(schema, 200, seed=1)
    assert set(made["state"]) == {"CA", "AL", None, UNLISTED}
    made.write(tmp_path / "dummy.csv")
    counts = source_at(tmp_path / "dummy.csv").counts(schema).dense()
    assert counts.tolist() == np.bincount(records_of(made, schema).codes[0], minlength=4).tolist()
