"""What SQL cannot ask is refused in one clear line with its place, whatever the text."""

from __future__ import annotations

import contextlib
import random

import duckdb
import numpy as np
import pytest
from harness.sql_queries import query
from harness.sql_tables import connect, random_rows, random_schema, shown_rows

from equipoise import Attribute, Marginal, Schema, attribute
from equipoise.errors import InvalidArgument
from equipoise.frames import Frame
from equipoise.queries.schema_checks import bin_labels
from equipoise.questions.sql import questions_from_sql

EDGES = (0.0, 15.0, 60.0)
SCHEMA = Schema(
    (
        Attribute("origin", ("EWR", "JFK", "none", "other"), missing="none", unknown="other"),
        Attribute("month", ("1", "2", "10")),
        Attribute("delay", (*bin_labels(EDGES), "none", "outside"), EDGES, missing="none", unknown="outside"),
    )
)
REFUSED = {
    "SELECT * FROM t": "single records",
    "SELECT origin FROM t": "GROUP BY",
    "SELECT origin FROM t GROUP BY origin": "COUNT",
    "SELECT COUNT(*) FROM t JOIN s ON t.month = s.month": "view",
    "SELECT COUNT(*) FROM t, s": "view",
    "SELECT COUNT(*) OVER () FROM t": "windows",
    "SELECT COUNT(DISTINCT origin) FROM t": "CountDistinct",
    "SELECT COUNT(*) FROM (SELECT * FROM t)": "subquery",
    "SELECT COUNT(*) FROM t WHERE origin IN (SELECT origin FROM t)": "list the values",
    "SELECT COUNT(*) FROM t UNION SELECT COUNT(*) FROM t": "UNION",
    "WITH z AS (SELECT 1) SELECT COUNT(*) FROM t": "WITH",
    "SELECT DISTINCT COUNT(*) FROM t": "DISTINCT",
    "SELECT COUNT(*) FROM t LIMIT 1 OFFSET 1": "OFFSET",
    "SELECT COUNT(*) FROM t TABLESAMPLE 10": "sample",
    "SELECT AVG(delay) FROM t": "GROUP BY delay",
    "SELECT my_own(delay) FROM t": "function",
    "SELECT COUNT(*) FROM t WHERE delay >= 15": "name both ends",
    "SELECT COUNT(*) FROM t WHERE delay > 15 AND delay < 60": "`>= 15` or `>= 60`",
    "SELECT COUNT(*) FROM t WHERE origin = 'LGA'": "no category",
    "SELECT COUNT(*) FROM t WHERE origin = 'none'": "IS NULL",
    "SELECT COUNT(*) FROM t WHERE origin = 'other'": "NOT IN",
    "SELECT COUNT(*) FROM t WHERE origin LIKE 'J%'": "list the values",
    "SELECT COUNT(*) FROM t WHERE origin = month": "two columns",
    "SELECT COUNT(*) FROM t WHERE month + 1 = 2": "ADD",
    "SELECT COUNT(*) FROM t WHERE origin = 5": "quotes",
    "SELECT COUNT(*) FROM t WHERE month = 3": "no category",
    "SELECT COUNT(*) FROM t WHERE delay BETWEEN 'a' AND 'b'": "without quotes",
    "SELECT COUNT(*) FROM t WHERE town = 'x'": "no attribute",
    "SELECT COUNT(*) AS month FROM t": "another one",
    "SELECT COUNT(*) AS a, COUNT(*) AS A FROM t": "same name",
    "DROP TABLE t": "SELECT",
    "SELECT COUNT(*) FROM t; \0": "NUL",
    "SELECT COUNT(*) FROM t WHERE origin = 'JFK": "never closed",
    "SELECT COUNT(*) FROM t /* a /* b */ */": "comment",
    "SELECT COUNT(*) FROM t WHERE origin = E'JFK'": "space is missing",
    "SELECT COUNT(*) FROM t WHERE $1": "nothing outside of quotes",
    "SELECT " + "(" * 10_000 + "1" + ")" * 10_000 + " FROM t": "nested deeper",
    "SELECT COUNT(*) FROM t WHERE " + "NOT " * 3_900 + "month = 1": "nested too deeply",
    "SELECT COUNT(*) FROM t WHERE month = 1 " + "OR month = 1 " * 100_000: "words and signs",
    "SELECT '" + "x" * 1_000_000 + "'": "longer than",
    "": "no statement",
    " -- nothing\n;;": "no statement",
}


@pytest.mark.parametrize(("text", "said"), REFUSED.items(), ids=[text[:60] or "empty" for text in REFUSED])
def test_refused_with_the_place_and_with_what_to_do_instead(text: str, said: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        questions_from_sql(text, SCHEMA)
    assert refusal.value.field.startswith("sql")
    assert said in refusal.value.problem
    assert "9000000" not in refusal.value.problem


def test_missing_values_are_in_neither_a_condition_nor_its_negation() -> None:
    (one,) = questions_from_sql("SELECT COUNT(*) FROM t WHERE NOT (origin = 'JFK')", SCHEMA)
    assert one.statements == (attribute("origin").isin(["EWR", "other"]),)


def test_comments_and_case_change_nothing() -> None:
    text = "select ORIGIN, count ( * ) /* ; ' */ from T -- it's\n group by Origin"
    (question,) = questions_from_sql(text, SCHEMA)
    assert question.statements == (Marginal(("origin",)),)


def test_mutated_queries_are_refused_or_right() -> None:
    draw = random.Random(7)
    schema = random_schema(draw)
    rows = random_rows(draw, schema)
    signs = "'\"();,.*=<>%-/\0    1aé\\$"
    answered = 0
    with connect(rows) as connection:
        for _ in range(1_000):
            text = list(query(draw, schema))
            for _ in range(draw.randint(0, 2)):
                place = draw.randrange(len(text))
                text[place : place + draw.randint(0, 2)] = draw.choice(signs)
            try:
                (question,) = questions_from_sql("".join(text), schema, "flights")
            except InvalidArgument:
                continue
            answered += 1
            shown_rows(question, schema, rows)
            # The parser here lets pass some that DuckDB's does not, such as AS without a name.
            with contextlib.suppress(duckdb.ParserException):
                connection.execute("EXPLAIN " + "".join(text))
    assert answered > 0


def test_frames_go_to_files_arrow_notebooks_and_pictures(tmp_path: object) -> None:
    frame = Frame(
        {
            "origin": ["=JFK", None],
            "n": np.array([2.5, np.nan]),
            "n_low": np.array([1.0, np.nan]),
            "n_high": np.array([3.0, np.nan]),
        }
    )
    from pathlib import Path  # noqa: PLC0415

    assert duckdb.from_arrow(frame.to_arrow()).fetchall() == [("=JFK", 2.5, 1.0, 3.0), (None, None, None, None)]
    for suffix in (".csv", ".json", ".parquet"):
        frame.write(Path(str(tmp_path)) / f"answer{suffix}")
    assert (Path(str(tmp_path)) / "answer.csv").read_text().splitlines()[1] == "'=JFK,2.5,1.0,3.0"
    assert "&lt;b" in Frame({"a": ["<b>"]})._repr_html_()
    assert frame.plot().get_ylabel() == "n"
    with pytest.raises(InvalidArgument, match="must end in"):
        frame.write(Path("answer.xls"))
