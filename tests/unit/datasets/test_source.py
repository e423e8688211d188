"""Sources: which kind a path is, where it may lie, and that a new kind is a class and a place in a list."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema
from equipoise_server.datasets import source
from equipoise_server.datasets.columns import Column, Values
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.datasets.files.tables import CsvFile, ParquetFile
from equipoise_server.datasets.source import Source, source_at, source_in

SCHEMA = Schema((Attribute("a", ("x", "y")),))


@pytest.mark.parametrize(
    ("name", "kind"), [("t.csv", CsvFile), ("T.CSV.GZ", CsvFile), ("t.parquet", ParquetFile), ("t.pq", ParquetFile)]
)
def test_the_name_tells_the_kind(name: str, kind: type) -> None:
    assert source_at(Path(name)) == kind(Path(name))


@pytest.mark.parametrize("name", ["t", "t.txt", "csv", "t.csv.zip", ".."])
def test_a_name_of_no_kind_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(
        InvalidArgument, match=r"table: must be a file that ends in one of .csv, .csv.gz, .tsv, .tsv.gz, .parquet"
    ):
        source_at(Path(name))


def test_a_source_lies_in_the_data_directory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "folder.csv").mkdir(parents=True)
    for path in (data / "t.csv", tmp_path / "outside.csv"):
        path.write_text("a\nx\n")
    (data / "link.csv").symlink_to(tmp_path / "outside.csv")
    assert source_in(data, "t.csv").counts(SCHEMA).dense().tolist() == [1, 0]
    (data / "loop.csv").symlink_to(data / "loop.csv")
    for name in ("", "../outside.csv", str(tmp_path / "outside.csv"), "link.csv", "link.csv?delimiter=;"):
        with pytest.raises(InvalidArgument, match="source: must be a file inside"):
            source_in(data, name)
    for name in ("nowhere.csv", "loop.csv", "folder.csv", "n" * 5000 + ".csv"):
        with pytest.raises(InvalidArgument, match="source: there is no such file"):
            source_in(data, name)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("t.csv?delimiter=;", CsvFile(Path("t.csv"), ";")),
        ("t.csv?delimiter=tab&encoding=latin-1", CsvFile(Path("t.csv"), "\t", "latin-1")),
        ("t.tsv", CsvFile(Path("t.tsv"), "\t")),
        ("t.tsv.gz?delimiter=|", CsvFile(Path("t.tsv.gz"), "|")),
    ],
)
def test_options_follow_the_name(name: str, source: CsvFile) -> None:
    assert source_at(Path(name)) == source


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("t.csv?delimiter=;;", "table: delimiter: must be tab, or one ASCII character"),
        ("t.csv?delimiter=", "table: delimiter: must be tab"),
        ('t.csv?delimiter="', "table: delimiter: must be tab"),
        ("t.csv?delimiter=é", "table: delimiter: must be tab"),
        ("t.csv?encoding=cp1252", "table: encoding: must be one of utf-8, latin-1, utf-16"),
        ("t.csv?quote='", "table: quote: is no option"),
        ("t.parquet?delimiter=;", "table: delimiter: files that end in .parquet have no options"),
    ],
)
def test_other_options_are_refused_by_name(name: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        source_at(Path(name))


def test_the_same_table_is_the_same_file_or_has_the_same_bytes(tmp_path: Path) -> None:
    for name, text in (("one.csv", "a\nx\n"), ("copy.csv", "a\nx\n"), ("other.csv", "a\ny\n")):
        (tmp_path / name).write_text(text)
    one, copy, other, gone = (source_at(tmp_path / f"{name}.csv") for name in ("one", "copy", "other", "gone"))
    assert one.same_table(one)
    assert one.same_table(copy)
    assert not one.same_table(other)
    assert not one.same_table(gone)


def test_sources_travel_to_worker_processes(tmp_path: Path) -> None:
    assert pickle.loads(pickle.dumps(source_at(tmp_path / "t.csv"))) == source_at(tmp_path / "t.csv")


@dataclass(frozen=True)
class Ones:
    """A table of as many records of each kind as its name has letters."""

    path: Path
    suffixes = (".ones",)

    @classmethod
    def of(cls, path: Path, options: Mapping[str, str], field: str) -> Ones:  # noqa: ARG003
        return cls(path)

    def exists(self) -> bool:
        return True

    def counts(self, schema: Schema) -> Counts:
        return DenseCounts(np.full(schema.universe_size, len(self.path.stem)), schema.sizes)

    def columns(self) -> tuple[Column, ...]:
        return (Column("a", Values.LABELS, ("x", "y")),)

    def same_table(self, other: object) -> bool:
        return self == other


def test_a_new_kind_is_a_class_and_a_place_in_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "KINDS", (*source.KINDS, Ones))
    found: Source = source_in(tmp_path, "four.ones")
    assert found.counts(SCHEMA).dense().tolist() == [4, 4]
    assert not source_at(tmp_path / "t.csv").same_table(found)
