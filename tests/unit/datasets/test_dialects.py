"""The statement of databases in the dialects of warehouses, as their own packages for SQLAlchemy write it.

No warehouse is reached. `sqlglot` knows what the statement means in each, and DuckDB counts by its translation.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import sqlglot
from harness.typed_table import COLUMNS, SCHEMA, write_parquet
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Double,
    MetaData,
    Numeric,
    Select,
    SmallInteger,
    Table,
    Text,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeEngine

from equipoise.queries.schema import Schema
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.packed_codes import counts_of
from equipoise_server.datasets.source import source_at
from equipoise_server.datasets.sql.columns import columns_of
from equipoise_server.datasets.sql.snapshot import snapshot_statement
from equipoise_server.datasets.sql.statement import grouping

pytestmark = [pytest.mark.full, pytest.mark.slow]

TYPES: dict[str, TypeEngine[Any]] = {
    "text": Text(),
    "double precision": Double(),
    "numeric(9,2)": Numeric(9, 2),
    "smallint": SmallInteger(),
    "boolean": Boolean(),
    "bigint": BigInteger(),
    "date": Date(),
    "timestamptz": DateTime(timezone=True),
}
DIALECTS = {
    "snowflake": "snowflake.sqlalchemy.snowdialect.SnowflakeDialect",
    "bigquery": "sqlalchemy_bigquery.BigQueryDialect",
    "databricks": "databricks.sqlalchemy.DatabricksDialect",
    "trino": "trino.sqlalchemy.dialect.TrinoDialect",
}
POSTGRESQL = "sqlalchemy.dialects.postgresql.base.PGDialect"


def table() -> Table:
    return Table("t", MetaData(), *(Column(name, TYPES[kind]) for name, (kind, _, _) in COLUMNS.items()))


def dialect(name: str) -> Dialect:
    return dialect_at(DIALECTS[name])


def dialect_at(place: str) -> Dialect:
    module, _, kind = place.rpartition(".")
    made: Dialect = getattr(importlib.import_module(module), kind)()
    return made


@pytest.mark.parametrize(
    ("name", "place", "plain"),
    [
        ("snowflake", "snowflake.sqlalchemy.TIMESTAMP_NTZ", DateTime()),
        ("snowflake", "snowflake.sqlalchemy.TIMESTAMP_LTZ", DateTime(timezone=True)),
        ("snowflake", "snowflake.sqlalchemy.TIMESTAMP_TZ", DateTime(timezone=True)),
        ("databricks", "databricks.sqlalchemy.TIMESTAMP", DateTime(timezone=True)),
        ("databricks", "databricks.sqlalchemy.TIMESTAMP_NTZ", DateTime()),
    ],
)
def test_a_package_s_own_types_of_times_are_times(name: str, place: str, plain: TypeEngine[Any]) -> None:
    """As its reflection of a table gives them: they are none of SQLAlchemy's types."""
    module, _, kind = place.rpartition(".")
    own = getattr(importlib.import_module(module), kind)()
    schema = Schema(tuple(each for each in SCHEMA.attributes if each.name == "left_at"))

    def said(kind: TypeEngine[Any]) -> str:
        columns = Table("t", MetaData(), Column("left_at", kind))
        compiled = grouping(columns, schema).compile(dialect=dialect(name), compile_kwargs={"literal_binds": True})
        return str(compiled)

    assert not isinstance(own, Date | DateTime)
    assert said(own) == said(plain)


# Google's packages warn of versions of grpcio that they will not take one day.
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", DIALECTS)
def test_the_statement_compiles_with_labels_as_parameters(name: str) -> None:
    made = dialect(name)
    compiled = grouping(table(), SCHEMA).compile(dialect=made)
    said = str(compiled)
    assert said.count("GROUP BY") == 1
    assert "DROP TABLE" not in said
    assert "'; DROP TABLE t; --" in compiled.params.values()
    # What a schema is suggested from compiles, too.
    asked: list[str] = []

    def ask(statement: Select[*tuple[Any, ...]]) -> list[tuple[int, ...]]:
        asked.append(str(statement.compile(dialect=made)))
        return [(1,) * len(statement.selected_columns)]

    assert len(list(columns_of(ask, table()))) == len(COLUMNS)
    assert len(asked) > 2 * len(COLUMNS)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", DIALECTS)
def test_what_the_statement_means_in_the_dialect_are_the_counts_of_a_file(name: str, tmp_path: Path) -> None:
    statement = grouping(table(), SCHEMA)
    said = str(statement.compile(dialect=dialect(name), compile_kwargs={"literal_binds": True}))
    write_parquet(tmp_path / "t.parquet")
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        connection.execute(f"CREATE TABLE t AS FROM '{tmp_path / 't.parquet'}'")
        groups = connection.execute(sqlglot.transpile(said, read=name, write="duckdb")[0]).fetchnumpy()
    *words, counts = (np.asarray(column, dtype=np.int64) for column in groups.values())
    of_file = source_at(tmp_path / "t.parquet").counts(SCHEMA)
    assert data_digest(counts_of(SCHEMA, words, counts)) == data_digest(of_file)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("person", ["", "id"])
@pytest.mark.parametrize("name", DIALECTS)
def test_the_statement_of_a_table_s_state_means_the_same_in_the_dialect(
    name: str, person: str, tmp_path: Path
) -> None:
    """It is one row of whole numbers, the same as by PostgreSQL's own dialect, and changes with a row."""
    wide = table()
    if person:
        wide.append_column(Column(person, BigInteger()))
    statement = snapshot_statement(wide, SCHEMA, person)
    compiled = statement.compile(dialect=dialect(name))
    assert "GROUP BY" not in str(compiled)
    assert "DROP TABLE" not in str(compiled)
    said = str(statement.compile(dialect=dialect(name), compile_kwargs={"literal_binds": True}))
    own = str(statement.compile(dialect=dialect_at(POSTGRESQL), compile_kwargs={"literal_binds": True}))
    write_parquet(tmp_path / "t.parquet")
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        connection.execute(f"CREATE TABLE t AS SELECT *, 7 AS id FROM '{tmp_path / 't.parquet'}'")
        translated, postgres = (
            sqlglot.transpile(text, read=read, write="duckdb")[0]
            for text, read in ((said, name), (own, "postgres"))
        )
        before = connection.execute(translated).fetchall()
        assert before == connection.execute(postgres).fetchall()
        assert len(before) == 1
        assert all(isinstance(number, int) for number in before[0])
        (rows,) = connection.execute("SELECT count(*) FROM t").fetchone() or (0,)
        assert before[0][0] == rows
        connection.execute("DELETE FROM t WHERE rowid = 0")
        after = connection.execute(translated).fetchall()
    assert after[0][0] == rows - 1
    assert all(old != new for old, new in zip(before[0][-2:], after[0][-2:], strict=True))
