"""Directories of Parquet files: one table, whatever the files are called."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema
from equipoise_server.datasets.source import source_at, source_in

SCHEMA = Schema((Attribute("month", ("1", "2", "12")), Attribute("size", ("s", "m"))))


def write(path: Path, **columns: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_the_files_of_a_directory_are_one_table(tmp_path: Path) -> None:
    write(tmp_path / "t.parquet" / "b.parquet", month=["1", "2"], size=["s", "s"])
    write(tmp_path / "t.parquet" / "below" / "a.pq", month=["12"], size=["m"])
    (tmp_path / "t.parquet" / "_SUCCESS").write_text("")
    counts = source_in(tmp_path, "t.parquet").counts(SCHEMA)
    assert counts.dense().tolist() == [1, 0, 1, 0, 0, 1]


def test_folders_of_a_partitioned_table_are_a_column(tmp_path: Path) -> None:
    for month in ("1", "12"):
        write(tmp_path / "t.parquet" / f"month={month}" / "0.parquet", size=["s", "m", "m"])
    counts = source_at(tmp_path / "t.parquet").counts(SCHEMA)
    assert counts.dense().tolist() == [1, 2, 0, 0, 1, 2]


def test_folders_above_the_table_are_none(tmp_path: Path) -> None:
    """What the path to a table is called is no part of it."""
    write(tmp_path / "month=2" / "t.parquet" / "0.parquet", size=["s"])
    with pytest.raises(InvalidArgument, match="table: has no column named 'month'"):
        source_at(tmp_path / "month=2" / "t.parquet").counts(SCHEMA)


def test_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "t.parquet" / "a.parquet", month=["1"], size=["s"])
    write(tmp_path / "t.parquet" / "b.parquet", month=["1"], colour=["red"])
    with pytest.raises(InvalidArgument, match="table: "):
        source_at(tmp_path / "t.parquet").counts(SCHEMA)


def test_columns_in_another_order_are_the_same(tmp_path: Path) -> None:
    write(tmp_path / "t.parquet" / "a.parquet", month=["1"], size=["s"])
    write(tmp_path / "t.parquet" / "b.parquet", size=["m"], month=["2"])
    assert source_at(tmp_path / "t.parquet").counts(SCHEMA).dense().tolist() == [1, 0, 0, 1, 0, 0]


def test_a_directory_without_a_table_is_none(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").mkdir()
    (tmp_path / "t.parquet" / "notes.txt").write_text("nothing")
    with pytest.raises(InvalidArgument, match="source: there is no such file"):
        source_in(tmp_path, "t.parquet")


def test_links_lead_nowhere_else(tmp_path: Path) -> None:
    write(tmp_path / "private.parquet", month=["1"], size=["s"])
    write(tmp_path / "data" / "t.parquet" / "a.parquet", month=["2"], size=["m"])
    (tmp_path / "data" / "t.parquet" / "b.parquet").symlink_to(tmp_path / "private.parquet")
    assert source_in(tmp_path / "data", "t.parquet").counts(SCHEMA).records == 1


def test_two_directories_with_the_same_files_are_the_same_table(tmp_path: Path) -> None:
    for name in ("t", "u", "v"):
        write(tmp_path / f"{name}.parquet" / "a.parquet", month=["1"], size=["s"])
        write(tmp_path / f"{name}.parquet" / "b.parquet", month=["2"], size=["s" if name == "v" else "m"])
    first, second, third = (source_at(tmp_path / f"{name}.parquet") for name in "tuv")
    assert first.same_table(second)
    assert not first.same_table(third)
    (tmp_path / "t.parquet" / "b.parquet").unlink()
    assert not first.same_table(second)


def test_only_folders_of_the_table_are_columns(tmp_path: Path) -> None:
    write(tmp_path / "size=m" / "t.parquet" / "month=12" / "0.parquet", colour=["red"])
    with pytest.raises(InvalidArgument, match="table: has no column named 'size'"):
        source_at(tmp_path / "size=m" / "t.parquet").counts(SCHEMA)
