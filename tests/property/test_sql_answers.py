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
QUERIES = 300  # on each table in the whole run, of which some are refused


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    ("seed", "queries"),
    [
        *((seed, 12) for seed in range(TABLES)),
        *(pytest.param(seed, QUERIES, marks=pytest.mark.full) for seed in range(100, 103)),
        *(pytest.param(seed, QUERIES, marks=pytest.mark.nightly) for seed in range(103, 100 + TABLES)),
    ],
)
def test_translated_sql_counts_what_duckdb_counts(seed: int, queries: int) -> None:
    draw = random.Random(seed)
    schema = random_schema(draw)
    rows = random_rows(draw, schema)
    with connect(rows) as connection:
        for _ in range(queries):
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
