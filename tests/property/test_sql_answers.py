"""SQL that is translated counts what DuckDB counts: random questions on random tables with missing values."""

from __future__ import annotations

import random

import pytest
from harness.sql_answers import compare
from harness.sql_queries import query
from harness.sql_tables import connect, random_rows, random_schema, shown_rows

from equipoise.errors import InvalidArgument
from equipoise.questions.canonical import sql_of
from equipoise.questions.sql import questions_from_sql

TABLES = 40
QUERIES = 260  # that are compared on each table in the whole run, more than 10,000 in all


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    ("seed", "queries"),
    [
        *((seed, 2) for seed in range(TABLES)),
        *(pytest.param(seed, 50, marks=pytest.mark.full) for seed in range(100, 103)),
        *(pytest.param(seed, QUERIES, marks=pytest.mark.nightly) for seed in range(103, 103 + TABLES)),
    ],
)
def test_translated_sql_counts_what_duckdb_counts(seed: int, queries: int) -> None:
    draw = random.Random(seed)
    schema = random_schema(draw)
    rows = random_rows(draw, schema)
    compared = 0
    with connect(rows) as connection:
        while compared < queries:
            text = query(draw, schema)
            try:
                (question,) = questions_from_sql(text, schema, "flights")
            except InvalidArgument:
                connection.execute(text)  # it is SQL, at least
                continue
            theirs = connection.execute(text).fetchall()
            ordered, keys = "ORDER BY" in text, len(question.keys)
            compare(shown_rows(question, schema, rows), theirs, keys, ordered, text)
            (again,) = questions_from_sql(sql_of(question), schema, "flights")
            compare(shown_rows(again, schema, rows), theirs, keys, ordered, sql_of(question))
            compared += 1
