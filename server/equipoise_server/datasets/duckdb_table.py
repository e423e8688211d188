"""Counts the equal rows of a table with DuckDB.

Nothing of the table's or the schema's text enters a SQL statement: columns are renamed by position, labels and
edges go in as parameters. DuckDB may open this one file and no other, writes nothing to disk, and loads no
extensions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.csv_labels import csv_label
from equipoise.queries.dates import ISO_8601
from equipoise.queries.schema import Attribute, Schema
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.universe import BELOW, MISSING, UNKNOWN, build_counts

NUMERIC = re.compile(r"U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*\)")


@dataclass(frozen=True)
class Relation:
    """A table function call whose columns are c0, c1, ..., its parameters, and the columns' own names and types.

    `decimal`: what numbers in text have before their fraction, a point or a comma.
    """

    sql: str
    parameters: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    decimal: str = "."


def count_rows(connection: duckdb.DuckDBPyConnection, relation: Relation, schema: Schema) -> Counts:
    """Count the rows of each possible record.

    Columns that the schema does not name are ignored. Categories are compared as text, also those of integer
    columns; nothing is trimmed. Raises `InvalidArgument("table", ...)` where rows are refused, with counts for each
    attribute, and `duckdb.Error` where the table cannot be read.
    """
    codes, counts = _grouped(connection, relation, schema)
    if not len(counts):
        raise InvalidArgument("table", "has no records")
    return build_counts(schema, codes, counts)


def connect(path: Path) -> duckdb.DuckDBPyConnection:
    """Open a database in memory that may read this one file and nothing else."""
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


def _grouped(
    connection: duckdb.DuckDBPyConnection, relation: Relation, schema: Schema
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Return the codes of each attribute in each group of equal rows, and the number of rows of each group."""
    inner, joins, outer = [], [], []
    for axis, attribute in enumerate(schema.attributes):
        column = _column(relation, attribute)
        if attribute.edges:
            name, kind = f"c{column}", relation.types[column]
            value = _seconds(name, kind) if attribute.dates else _number(name, kind, relation.decimal)
            inner.append(f"c{column} IS NULL AS null{axis}, {value} AS v{axis}")
            _create_map(connection, axis, "DOUBLE", attribute.edges)
            joins.append(f"ASOF LEFT JOIN map{axis} ON v{axis} >= map{axis}.key")
            outer.append(
                f"CASE WHEN null{axis} OR isnan(v{axis}) THEN {MISSING} WHEN v{axis} IS NULL THEN {UNKNOWN} "
                f"ELSE coalesce(map{axis}.code, {BELOW}) END AS code{axis}"
            )
        else:
            inner.append(f"CAST(c{column} AS VARCHAR) AS v{axis}")
            _create_map(connection, axis, "VARCHAR", attribute.categories)
            _add_spellings(connection, axis, attribute.categories)
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


def _number(column: str, kind: str, decimal: str) -> str:
    """Return the expression of a column's numbers as doubles; null for what is none."""
    if NUMERIC.fullmatch(kind):
        return f"TRY_CAST({column} AS DOUBLE)"
    text = f"CAST({column} AS VARCHAR)"
    if decimal == ".":
        return f"TRY_CAST({text} AS DOUBLE)"
    # A point could only stand between thousands, and would be taken for the decimal one.
    return f"CASE WHEN NOT contains({text}, '.') THEN TRY_CAST(replace({text}, ',', '.') AS DOUBLE) END"


def _seconds(column: str, kind: str) -> str:
    """Return the expression of a column's dates as whole seconds since 1970, rounded down; null for what is none.

    Text is taken apart here, as DuckDB's own reading leaves offsets out, and no session's time zone may matter.
    """
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        per_second, unit = (10**9, "ns") if kind.endswith("_NS") else (10**6, "us")
        count = f"epoch_{unit}({column})"
        # Division rounds towards 0, so what is left over is negative before 1970.
        return f"CAST({count} // {per_second} - CAST({count} % {per_second} < 0 AS BIGINT) AS DOUBLE)"
    text = f"CAST({column} AS VARCHAR)"
    local = f"TRY_CAST(regexp_extract({text}, '^[0-9-]+([T ][0-9:]+)?') AS TIMESTAMP)"
    hours, minutes = (
        f"coalesce(TRY_CAST(regexp_extract({text}, '[T ].*[+-]([0-9]{{2}}):?([0-9]{{2}})?$', {part}) AS BIGINT), 0)"
        for part in (1, 2)
    )
    east = f"CASE WHEN regexp_matches({text}, '[T ].*-') THEN -1 ELSE 1 END * ({hours} * 3600 + {minutes} * 60)"
    return (
        f"CASE WHEN regexp_full_match({text}, '{ISO_8601}') "
        f"THEN CAST(epoch_us({local}) // 1000000 - {east} AS DOUBLE) END"
    )


def _create_map(
    connection: duckdb.DuckDBPyConnection, axis: int, kind: str, keys: Sequence[str] | Sequence[float]
) -> None:
    """Create a table that maps labels or edges to their positions."""
    connection.execute(f"CREATE TEMP TABLE map{axis} (key {kind}, code BIGINT)")
    connection.execute(
        f"INSERT INTO map{axis} SELECT unnest(?::{kind}[]), unnest(range(?))", [list(keys), len(keys)]
    )


def _add_spellings(connection: duckdb.DuckDBPyConnection, axis: int, labels: Sequence[str]) -> None:
    """Add further spellings of labels, unless a spelling is itself a label.

    Truth values are accepted in any case, because one program may write `True` to CSV and `true` to Parquet. Labels
    are also accepted as synopses write them, where no label is a formula.
    """
    known = set(labels)
    folded = [label.lower() for label in labels]
    for word in ("true", "false"):
        if folded.count(word) == 1:
            code = folded.index(word)
            others = sorted({word, word.title(), word.upper()} - known)
            connection.execute(f"INSERT INTO map{axis} SELECT unnest(?::VARCHAR[]), ?", [others, code])
    for code, label in enumerate(labels):
        if (written := csv_label(label)) not in known:
            connection.execute(f"INSERT INTO map{axis} VALUES (?, ?)", [written, code])


def _column(relation: Relation, attribute: Attribute) -> int:
    spellings = [name for name in (attribute.name, csv_label(attribute.name)) if name in relation.names]
    columns = [i for i, name in enumerate(relation.names) if name in spellings[:1]]
    if len(columns) != 1:
        problem = "no column" if not columns else f"{len(columns)} columns"
        raise InvalidArgument("table", f"has {problem} named {attribute.name!r}")
    return columns[0]
