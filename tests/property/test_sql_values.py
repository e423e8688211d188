"""SQL of values against DuckDB, on tables in which every number is the middle of its bin.

Exact answers to the statements must give DuckDB's own sums, means, quantiles and variances: quantiles and variances
to the digit, sums and means within an interval that is as wide as a sum's rounding to whole records and no wider
than that and the error of binning.
"""

from __future__ import annotations

import math
import random

import pytest
from harness.sql_queries import condition
from harness.sql_tables import EDGES, RECORDS, category, connect, exact_results, random_rows, random_schema

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise.questions.canonical import sql_of
from equipoise.questions.expressions import Spread
from equipoise.questions.question import Question
from equipoise.questions.questions import Questions
from equipoise.questions.sql import questions_from_sql

TABLES, QUERIES = 30, 40


def with_middles(rows: list[tuple[object, ...]], schema: Schema) -> list[tuple[object, ...]]:
    """The rows with every delay in the middle of its bin; those beyond the bins stay what they are."""
    place, attribute = schema.names.index("delay"), schema.attribute("delay")
    changed = []
    for row in rows:
        number = category(attribute, row[place])
        middle = (EDGES[number] + EDGES[number + 1]) / 2 if number < attribute.bins else row[place]
        changed.append((*row[:place], middle, *row[place + 1 :]))
    return changed


def number(draw: random.Random) -> str:
    """A function of the values of one attribute, maybe between bounds, maybe of some records."""
    name = draw.choice(("delay", "delay", "month"))
    of = name
    if draw.random() < 0.5:
        low, high = sorted(draw.sample(EDGES if name == "delay" else (-3, 1, 2, 10), 2))
        of = f"LEAST(GREATEST({name}, {low:g}), {high:g})"
    text = draw.choice(
        (
            f"SUM({of})",
            f"AVG({of})",
            f"MEDIAN({of})",
            f"QUANTILE_CONT({of}, {draw.choice((0, 0.1, 0.25, 0.9, 1))})",
            f"PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY {of} {draw.choice(('', 'DESC'))})",
            f"VAR_POP({of})",
            f"STDDEV_POP({of})",
        )
    )
    return f"{text} FILTER (WHERE {condition(draw, 2)})" if draw.random() < 0.3 else text


def query(draw: random.Random, schema: Schema) -> str:
    keys = [name for name in ("carrier", "month", "kind") if not schema.attribute(name).unknown]
    chosen = draw.sample(keys, draw.randint(0, min(2, len(keys))))
    columns = [*chosen, *(f"{number(draw)} AS n{place}" for place in range(draw.randint(1, 3)))]
    where = [condition(draw, 1)] if draw.random() < 0.4 else []
    where += [f"{name} IS NOT NULL" for name in ("delay", "month") if draw.random() < 0.6]
    where += [f"delay >= {EDGES[0]} AND delay < {EDGES[-1]}"] if draw.random() < 0.4 else []
    grouped = f" GROUP BY {', '.join(chosen)}" if chosen else ""
    return (
        f"SELECT {', '.join(columns)} FROM flights"
        + (f" WHERE {' AND '.join(map(braced, where))}" * bool(where))
        + grouped
    )


def braced(text: str) -> str:
    return f"({text})"


@pytest.mark.sparse(6)
@pytest.mark.thin(14)
@pytest.mark.parametrize("seed", range(TABLES))
def test_translated_sql_of_values_comes_to_duckdb_s_numbers(seed: int) -> None:
    draw = random.Random(seed)
    schema = random_schema(draw)
    rows = with_middles(random_rows(draw, schema), schema)
    answered = 0
    with connect(rows) as connection:
        for _ in range(QUERIES):
            text = query(draw, schema)
            theirs = connection.execute(text).fetchall()
            try:
                (question,) = questions_from_sql(text, schema, "flights")
            except InvalidArgument:
                continue
            answered += 1
            (again,) = questions_from_sql(sql_of(question), schema, "flights")
            for each in (question, again):
                check(each, theirs, schema, rows, text)
    assert answered


def check(
    question: Question, theirs: list[tuple[object, ...]], schema: Schema, rows: list[tuple[object, ...]], text: str
) -> None:
    asked, keys = Questions((question,)), len(question.keys)
    (frame,) = asked.answers(exact_results(asked, schema, rows), RECORDS)
    ours = {tuple(map(label, row[:keys])): row for row in frame.rows()}
    for row in theirs:
        own = dict(zip(frame.names, ours[tuple(map(label, row[:keys]))], strict=True))
        for place, truth in enumerate(row[keys:]):
            told = [own[f"n{place}{end}"] for end in ("", "_low", "_high")]
            compare(told, truth, exact=isinstance(question.outputs[keys + place].expression, Spread), text=text)


def label(value: object) -> object:
    return float(value) if isinstance(value, int | float) else value


def compare(told: list[object], truth: object, *, exact: bool, text: str) -> None:
    """`truth`: DuckDB's, None of no records."""
    if truth is None:
        assert told[0] is None or told[0] == 0, (text, told)
        return
    value, low, high = (float(str(each)) for each in told)
    wanted = float(str(truth))
    slack = 1e-9 * max(1.0, abs(wanted))
    assert low - slack <= wanted <= high + slack, (text, told, truth)
    if exact:
        assert math.isclose(value, wanted, rel_tol=1e-9, abs_tol=1e-6), (text, told, truth)
