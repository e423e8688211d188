"""Counts the equal rows of a table with DuckDB.

Nothing of the table's or the schema's text enters a SQL statement: columns are renamed by position, labels go in as
parameters, and edges as numbers. DuckDB may open these files and no others, writes nothing to disk, and loads no
extensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.csv_labels import csv_label
from equipoise.queries.schema import Attribute, Schema
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.files.values import bin_code, number, seconds
from equipoise_server.datasets.label_codes import label_codes
from equipoise_server.datasets.packed_codes import counts_of, words_of
from equipoise_server.datasets.universe import BELOW, MISSING, UNKNOWN

# Above so many edges a join with them, which sorts the rows and keeps them all, is quicker than halving.
MAX_HALVED = 256


@dataclass(frozen=True)
class Relation:
    """A table function call whose columns are c0, c1, ..., its parameters, and the columns' own names and types.

    `decimal`: what numbers in text have before their fraction, a point or a comma.
    """

    sql: str
    parameters: tuple[str | list[str], ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    decimal: str = "."


def count_rows(connection: duckdb.DuckDBPyConnection, relation: Relation, schema: Schema) -> Counts:
    """Count the rows of each possible record.

    Columns that the schema does not name are ignored. Categories are compared as text, also those of integer
    columns; nothing is trimmed. Raises `InvalidArgument("table", ...)` where rows are refused, with counts for each
    attribute, and `duckdb.Error` where the table cannot be read.
    """
    return counts_of(schema, *_grouped(connection, relation, schema))


def connect(paths: Sequence[Path]) -> duckdb.DuckDBPyConnection:
    """Open a database in memory that may read these files and nothing else."""
    connection = duckdb.connect(
        ":memory:",
        config={
            "temp_directory": "",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "preserve_insertion_order": "false",
        },
    )
    # DuckDB counts its progress only for a bar. It prints one from the start where the program is no file, as in a
    # worker, and a worker has no terminal: so before any other statement, as each may take long on a busy machine.
    connection.execute("SET enable_progress_bar_print = false")
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET allowed_paths = ?", [[str(path) for path in paths]])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _grouped(
    connection: duckdb.DuckDBPyConnection, relation: Relation, schema: Schema
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Return the words (`packed_codes`) of each group of equal rows, and the number of rows of each group."""
    words, rows = coded_rows(connection, relation, schema)
    groups = connection.execute(
        f"SELECT {', '.join(words)}, count(*) FROM {rows} GROUP BY ALL", list(relation.parameters)
    ).fetchnumpy()
    *packed, counts = (np.asarray(column, dtype=np.int64) for column in groups.values())
    return packed, counts


def coded_rows(
    connection: duckdb.DuckDBPyConnection, relation: Relation, schema: Schema, *beside: str
) -> tuple[list[str], str]:
    """Return the expressions of a row's words (`packed_codes`), and what they are selected from.

    `beside`: further expressions over the relation's columns that can be selected from it, each with its name. The
    relation's parameters go with the statement.
    """
    values, joins, codes = list(beside), [], []
    for axis, attribute in enumerate(schema.attributes):
        column = place_of(relation, attribute)
        name, kind = f"c{column}", relation.types[column]
        value, code = f"v{axis}", f"map{axis}.code"
        if not attribute.edges:
            values.append(f"CAST({name} AS VARCHAR) AS {value}")
            spellings = label_codes(attribute)
            _create_map(connection, axis, "VARCHAR", list(spellings), list(spellings.values()))
            joins.append(f"LEFT JOIN map{axis} ON {value} = map{axis}.key")
            codes.append(f"CASE WHEN {value} IS NULL THEN {MISSING} ELSE coalesce({code}, {UNKNOWN}) END")
            continue
        read = seconds(name, kind) if attribute.dates else number(name, kind, relation.decimal)
        values.append(f"{name} IS NULL AS null{axis}, {read} AS {value}")
        if len(attribute.edges) > MAX_HALVED:
            _create_map(connection, axis, "DOUBLE", attribute.edges, range(len(attribute.edges)))
            joins.append(f"ASOF LEFT JOIN map{axis} ON {value} >= map{axis}.key")
            code = f"coalesce({code}, {BELOW})"
        else:
            code = bin_code(value, attribute.edges)
        codes.append(
            f"CASE WHEN null{axis} OR isnan({value}) THEN {MISSING} WHEN {value} IS NULL THEN {UNKNOWN} "
            f"ELSE {code} END"
        )
    words = [
        " + ".join(f"(CAST({codes[axis]} AS BIGINT) - {BELOW}) * {factor}" for axis, factor in word)
        for word in words_of(schema)
    ]
    return words, f"(SELECT {', '.join(values)} FROM {relation.sql}) {' '.join(joins)}"


def _create_map(
    connection: duckdb.DuckDBPyConnection, axis: int, kind: str, keys: Sequence[object], codes: Sequence[int]
) -> None:
    """Create a table that maps spellings or edges to their positions."""
    connection.execute(f"CREATE TEMP TABLE map{axis} (key {kind}, code BIGINT)")
    connection.execute(f"INSERT INTO map{axis} SELECT unnest(?::{kind}[]), unnest(?)", [list(keys), list(codes)])


def place_of(relation: Relation, attribute: Attribute) -> int:
    """Return the place of an attribute's column. Raises `InvalidArgument` unless there is exactly one."""
    spellings = [name for name in (attribute.name, csv_label(attribute.name)) if name in relation.names]
    columns = [i for i, name in enumerate(relation.names) if name in spellings[:1]]
    if len(columns) != 1:
        problem = "no column" if not columns else f"{len(columns)} columns"
        raise InvalidArgument("table", f"has {problem} named {attribute.name!r}")
    return columns[0]
