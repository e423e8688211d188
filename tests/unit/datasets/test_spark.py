"""Tables that a real Spark counts: the counts and digest of a file that DuckDB reads, and descriptions of them."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from harness.engines import for_spark
from harness.typed_table import COLUMNS, ROWS, SCHEMA, write_parquet

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise_server.datasets.columns import Values
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.packed_codes import words_of
from equipoise_server.datasets.source import source_at, source_in

pytestmark = [pytest.mark.full, pytest.mark.slow]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A directory with one Parquet file, as Spark writes tables."""
    path = tmp_path / "t.parquet"
    path.mkdir()
    write_parquet(path / "part-0.parquet")
    return path


def test_spark_finds_the_counts_and_the_digest_that_duckdb_finds(file: Path, tmp_path: Path) -> None:
    of_file = source_at(file).counts(SCHEMA)
    of_spark = for_spark(tmp_path, "t.parquet").counts(SCHEMA)
    assert of_spark.records == len(ROWS)
    assert (of_spark.dense() == of_file.dense()).all()
    assert data_digest(of_spark) == data_digest(of_file)


@pytest.mark.nightly
def test_spark_recognises_the_rows_of_a_table_and_notices_others(file: Path, tmp_path: Path) -> None:
    table = for_spark(tmp_path, "t.parquet")
    before = table.snapshot(SCHEMA)
    assert before.rows == len(ROWS)
    (file / "part-0.parquet").rename(file / "part-1.parquet")
    assert table.snapshot(SCHEMA) == before
    rows = pq.read_table(file / "part-1.parquet")
    pq.write_table(rows.slice(1), file / "part-1.parquet")
    assert table.snapshot(SCHEMA).rows == len(ROWS) - 1
    # A version of a table that keeps all of them is recognised by its name, without a Spark.
    first, second, again = (
        for_spark(tmp_path, "t.parquet", f'format = "delta"\nsnapshot = "{version}"\n').snapshot(SCHEMA)
        for version in (1, 2, 1)
    )
    assert first != second
    assert first == again


@pytest.mark.nightly
def test_rows_of_more_than_one_word_are_counted_alike(tmp_path: Path) -> None:
    edges = (0.0, 1.0, 2.0)
    names = [f"s{number}" for number in range(30)]
    wide = Schema(tuple(Attribute(name, bin_labels(edges), edges, clamp=True) for name in names))
    assert len(words_of(wide)) > 1
    columns = {name: pa.array([row % (place + 2) for row in range(200)]) for place, name in enumerate(names)}
    pq.write_table(pa.table(columns), tmp_path / "wide.parquet")
    of_file = source_at(tmp_path / "wide.parquet").counts(wide)
    assert data_digest(for_spark(tmp_path, "wide.parquet").counts(wide)) == data_digest(of_file)


@pytest.mark.nightly
def test_spark_says_what_the_columns_hold(file: Path, tmp_path: Path) -> None:
    of_file = {column.name: column for column in source_at(file).columns()}
    of_spark = {column.name: column for column in for_spark(tmp_path, "t.parquet").columns()}
    assert list(of_spark) == list(COLUMNS)
    for name, column in of_spark.items():
        assert (column.values, column.missing) == (of_file[name].values, of_file[name].missing)
        for mine, theirs in ((column.low, of_file[name].low), (column.high, of_file[name].high)):
            assert mine == theirs or math.floor(mine or 0) == theirs  # DuckDB tells dates in whole seconds
    assert of_spark["day"].values is Values.DATES
    assert set(of_spark["carrier"].labels) == {value for value in COLUMNS["carrier"][2] if value is not None}


DESCRIPTIONS = [
    ('master = "local"\n', "table: path: either path or table must be set"),
    ('master = "local"\npath = "t"\ntable = "t"\n', "table: path: either path or table must be set"),
    ('path = "t"\n', "table: master: Field required"),
    ('master = "sc://host/;token=secret"\npath = "t"\n', "table: master: must be local, local[N], spark://"),
    ('master = "local"\npath = "t"\nsnapshot = "1"\n', "table: snapshot: only delta and iceberg have versions"),
    ('master = "local"\ntable = "t"\nformat = "csv"\n', "table: format: is of a path; a table has its own"),
    ('master = "local"\npath = "t"\nproperties_file = "nowhere"\n', "table: properties_file: "),
    ('master = "local"\npath = "t"\npassword = "secret"\n', "table: password: Extra inputs are not permitted"),
    ("master\n", "is not TOML"),
]


@pytest.mark.parametrize(("text", "problem"), DESCRIPTIONS)
def test_a_description_that_does_not_work_is_refused_by_field(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "t.spark.toml").write_text(text)
    with pytest.raises(InvalidArgument) as refused:
        source_at(tmp_path / "t.spark.toml").counts(SCHEMA)
    assert problem in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_description_is_a_source_of_the_data_directory(tmp_path: Path) -> None:
    source = for_spark(tmp_path, "t.parquet")
    assert source_in(tmp_path, "t.spark.toml") == source
    assert pickle.loads(pickle.dumps(source)) == source
    with pytest.raises(InvalidArgument, match="source: delimiter: descriptions for Spark have no options"):
        source_in(tmp_path, "t.spark.toml?delimiter=;")


def test_two_descriptions_of_one_table_are_the_same_table(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    first = for_spark(tmp_path, "t.parquet")
    assert first.same_table(for_spark(elsewhere, "../t.parquet"))
    assert not first.same_table(for_spark(elsewhere, "t.parquet"))
    assert not first.same_table(source_at(tmp_path / "t.csv"))
