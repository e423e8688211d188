"""Finds out with DuckDB what the columns of a file hold."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

from equipoise_server.datasets.columns import MAX_LABELS, Column, Values
from equipoise_server.datasets.files.grouping import Relation
from equipoise_server.datasets.files.values import number, seconds

_FACTS = (
    "count(*), count({column}), count(n), count(*) FILTER (isnan(n)), min(n) FILTER (isfinite(n)), "
    "max(n) FILTER (isfinite(n)), coalesce(bool_and(n = floor(n)), false), count(s), min(s), max(s)"
)


def columns_of(connection: duckdb.DuckDBPyConnection, relation: Relation) -> Iterator[Column]:
    """Yield the columns that have a name, in order. Raises `duckdb.Error` where the table cannot be read."""
    for place, (name, kind) in enumerate(zip(relation.names, relation.types, strict=True)):
        if name:
            yield _column(connection, relation, place, name, kind)


def _column(connection: duckdb.DuckDBPyConnection, relation: Relation, place: int, name: str, kind: str) -> Column:
    column = f"c{place}"
    parameters = list(relation.parameters)
    values = f"{column}, {number(column, kind, relation.decimal)} AS n, {seconds(column, kind)} AS s"
    asked = f"SELECT {_FACTS.format(column=column)} FROM (SELECT {values} FROM {relation.sql})"
    (facts,) = connection.execute(asked, parameters).fetchall()
    rows, present, numbers, nan, low, high, whole, dates, first, last = facts
    listed = connection.execute(
        f"SELECT v FROM (SELECT CAST({column} AS VARCHAR) AS v FROM {relation.sql}) WHERE v IS NOT NULL "
        f"GROUP BY v ORDER BY count(*) DESC, v LIMIT {MAX_LABELS + 1}",
        parameters,
    ).fetchall()
    labels = tuple(str(row[0]) for row in listed) if len(listed) <= MAX_LABELS else ()
    missing = rows > present or nan > 0
    if present and dates == present:
        return Column(name, Values.DATES, labels, first, last, missing)
    if present and numbers == present and low is not None:
        return Column(name, Values.WHOLE if whole else Values.NUMBERS, labels, low, high, missing)
    return Column(name, Values.LABELS, labels, missing=missing)
