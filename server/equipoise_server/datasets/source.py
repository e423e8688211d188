"""Reads a table with DuckDB, as counts of equal rows.

Nothing of the table's or the schema's text enters a SQL statement: columns are renamed by position, labels and
edges go in as parameters. DuckDB may open this one file and no other, writes nothing to disk, and loads no
extensions. Its own messages quote lines of the file, which are private, so callers get fixed texts instead.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.datasets.universe import BELOW, MISSING, UNKNOWN, build_histogram, check_universe

CSV_SUFFIXES = (".csv", ".csv.gz")
PARQUET_SUFFIXES = (".parquet", ".pq")
NUMERIC = re.compile(r"U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*\)")


@dataclass(frozen=True)
class _Relation:
    """A table function call whose columns are c0, c1, ..., its parameters, and the columns' own names and types."""

    sql: str
    parameters: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]


def load_counts(path: Path, schema: Schema) -> Counts:
    """Reads a CSV or Parquet file (by suffix) as counts over the schema's universe.

    Columns that the schema does not name are ignored. In CSV, empty fields and `NA` are missing. Categories are
    compared as text, also those of integer columns; nothing is trimmed. Raises `InvalidArgument`: "table" where
    the file cannot be read or rows are refused (with counts for each attribute), "schema" where the universe is too
    large.
    """
    check_universe(schema)
    if not path.is_file():
        raise InvalidArgument("table", "there is no such file")
    path = path.resolve()
    if set("*?[") & set(str(path)):
        # DuckDB would take it for a pattern, and offers no way to say that it is none.
        raise InvalidArgument("table", "has one of the characters * ? [ in its path")
    try:
        with _connect(path) as connection:
            relation = _relation(connection, path)
            codes, counts = _grouped(connection, relation, schema)
    except (duckdb.Error, UnicodeDecodeError, csv.Error, OSError, EOFError) as error:
        raise InvalidArgument("table", _unreadable(error)) from None
    if not len(counts):
        raise InvalidArgument("table", "has no records")
    return DenseCounts(build_histogram(schema, codes, counts), schema.sizes)


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        ":memory:",
        config={
            "temp_directory": "",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "preserve_insertion_order": "false",
        },
    )
    connection.execute("SET allowed_paths = ?", [[str(path)]])
    connection.execute("SET enable_external_access = false")
    # A worker has no terminal of its own: a bar would go to the standard output of the server.
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _relation(connection: duckdb.DuckDBPyConnection, path: Path) -> _Relation:
    if path.name.lower().endswith(CSV_SUFFIXES):
        return _csv(path)
    if path.name.lower().endswith(PARQUET_SUFFIXES):
        return _parquet(connection, path)
    suffixes = ", ".join((*CSV_SUFFIXES, *PARQUET_SUFFIXES))
    raise InvalidArgument("table", f"must be a file that ends in one of {suffixes}")


def _csv(path: Path) -> _Relation:
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        names = next(csv.reader(file, strict=True), [])
    if not names:
        raise InvalidArgument("table", "has no header line")
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
    # Without detection nothing depends on what the first lines happen to look like.
    sql = (
        f"read_csv(?, columns = {{{columns}}}, auto_detect = false, header = true, delim = ',', quote = '\"', "
        "escape = '\"', nullstr = ['', 'NA'], hive_partitioning = false)"
    )
    return _Relation(sql, (str(path),), tuple(names), ("VARCHAR",) * len(names))


def _parquet(connection: duckdb.DuckDBPyConnection, path: Path) -> _Relation:
    source = "read_parquet(?, hive_partitioning = false)"
    described = connection.execute(f"DESCRIBE SELECT * FROM {source}", [str(path)]).fetchall()
    elements = connection.execute("SELECT name, num_children FROM parquet_schema(?)", [str(path)]).fetchall()
    names = _top_level([(str(name), int(children or 0)) for name, children in elements])
    columns = ", ".join(f"c{i}" for i in range(len(described)))
    return _Relation(f"{source} AS t({columns})", (str(path),), names, tuple(str(row[1]) for row in described))


def _top_level(elements: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """The columns' names as the file has them, from its tree of elements in depth-first order.

    DuckDB's own list renames a column that another one equals but for its case.
    """
    names = []
    pending = [elements[0][1]]
    for name, children in elements[1:]:
        if len(pending) == 1:
            names.append(name)
        pending[-1] -= 1
        if children:
            pending.append(children)
        while len(pending) > 1 and not pending[-1]:
            pending.pop()
    return tuple(names)


def _grouped(
    connection: duckdb.DuckDBPyConnection, relation: _Relation, schema: Schema
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """The codes of each attribute in each group of equal rows, and the number of rows of each group."""
    inner, joins, outer = [], [], []
    for axis, attribute in enumerate(schema.attributes):
        column = _column(relation, attribute)
        if attribute.edges:
            numeric = NUMERIC.fullmatch(relation.types[column])
            text = f"c{column}" if numeric else f"CAST(c{column} AS VARCHAR)"
            inner.append(f"c{column} IS NULL AS null{axis}, TRY_CAST({text} AS DOUBLE) AS v{axis}")
            _create_map(connection, axis, "DOUBLE", attribute.edges)
            joins.append(f"ASOF LEFT JOIN map{axis} ON v{axis} >= map{axis}.key")
            outer.append(
                f"CASE WHEN null{axis} OR isnan(v{axis}) THEN {MISSING} WHEN v{axis} IS NULL THEN {UNKNOWN} "
                f"ELSE coalesce(map{axis}.code, {BELOW}) END AS code{axis}"
            )
        else:
            inner.append(f"CAST(c{column} AS VARCHAR) AS v{axis}")
            _create_map(connection, axis, "VARCHAR", attribute.categories)
            joins.append(f"LEFT JOIN map{axis} ON v{axis} = map{axis}.key")
            outer.append(
                f"CASE WHEN v{axis} IS NULL THEN {MISSING} "
                f"ELSE coalesce(map{axis}.code, {UNKNOWN}) END AS code{axis}"
            )
    rows = f"SELECT {', '.join(inner)} FROM {relation.sql}"
    groups = connection.execute(
        f"SELECT {', '.join(outer)}, count(*) AS rows FROM ({rows}) {' '.join(joins)} GROUP BY ALL",
        list(relation.parameters),
    ).fetchnumpy()
    columns = [np.asarray(groups[f"code{axis}"], dtype=np.int64) for axis in range(len(schema.attributes))]
    return columns, np.asarray(groups["rows"], dtype=np.int64)


def _create_map(
    connection: duckdb.DuckDBPyConnection, axis: int, kind: str, keys: Sequence[str] | Sequence[float]
) -> None:
    """A table from labels or edges to their positions."""
    connection.execute(f"CREATE TEMP TABLE map{axis} (key {kind}, code BIGINT)")
    connection.execute(
        f"INSERT INTO map{axis} SELECT unnest(?::{kind}[]), unnest(range(?))", [list(keys), len(keys)]
    )


def _column(relation: _Relation, attribute: Attribute) -> int:
    found = [i for i, name in enumerate(relation.names) if name == attribute.name]
    if len(found) != 1:
        problem = "no column" if not found else f"{len(found)} columns"
        raise InvalidArgument("table", f"has {problem} named {attribute.name!r}")
    return found[0]


def _unreadable(error: Exception) -> str:
    line = re.search(r"CSV Error on Line: (\d+)", str(error))
    where = f" at line {int(line[1]):,}" if line else ""
    return f"cannot be read{where}: it is damaged, or not the kind of file that its name says, in UTF-8"
