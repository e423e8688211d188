"""Random tables with missing and unlisted values, random SQL about them, and two ways to answer it exactly."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, timedelta

import duckdb
import numpy as np

from equipoise.model.results import AnswerMethod, Answers
from equipoise.queries.dates import seconds_of
from equipoise.queries.fixed_point import ONE
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.workload_compiler import compile_workload
from equipoise.questions.question import Question
from equipoise.questions.questions import Questions
from equipoise.results import Results

RECORDS = 64  # a power of two, so that fractions of the records are exact
EDGES = (-5.0, 0.0, 2.5, 7.0, 20.0)
DAYS = ("2013-01-01", "2013-02-01", "2013-03-01", "2013-04-01")
LABELS = ("AA", "Ab", "B_", "it's", "x%y")
NUMBERS = ("1", "2", "10", "-3")
TYPES = {"carrier": "VARCHAR", "month": "INTEGER", "delay": "DOUBLE", "day": "DATE", "kind": "VARCHAR"}


def random_schema(draw: random.Random) -> Schema:
    """Five attributes, each with some of the rules that a schema can have."""

    def rules(name: str, edges: bool = False) -> dict[str, str | bool]:
        chosen: dict[str, str | bool] = {"missing": f"no {name}"} if draw.random() < 0.7 else {}
        if draw.random() < 0.5:
            chosen |= {"clamp": True} if edges and draw.random() < 0.5 else {"unknown": f"other {name}"}
        return chosen

    def attribute(
        name: str, labels: Sequence[str], edges: tuple[float, ...] = (), dates: bool = False
    ) -> Attribute:
        given = rules(name, bool(edges))
        added = tuple(str(given[rule]) for rule in ("missing", "unknown") if rule in given)
        return Attribute(name, (*labels, *added), edges=edges, dates=dates, **given)  # type: ignore[arg-type]

    days = tuple(seconds_of("day", each) for each in DAYS)
    return Schema(
        (
            attribute("carrier", LABELS),
            attribute("month", NUMBERS),
            attribute("delay", bin_labels(EDGES), EDGES),
            attribute("day", bin_labels(days, True), days, dates=True),
            Attribute("kind", ("p", "q", "none"), missing="none"),
        )
    )


def random_rows(draw: random.Random, schema: Schema) -> list[tuple[object, ...]]:
    """Rows of values that the schema has a category for."""
    delays = [*EDGES[:-1], -4.9, 2.4999, 2.6, 19.0, 0.1]
    first, last = date.fromisoformat(DAYS[0]), date.fromisoformat(DAYS[-1])
    listed: dict[str, list[object]] = {
        "carrier": list(LABELS),
        "month": [1, 2, 10, -3],
        "delay": list(delays),
        "day": [first + timedelta(days=each) for each in range((last - first).days)],
        "kind": ["p", "q"],
    }
    others: dict[str, list[object]] = {
        "carrier": ["ZZ", "aa", "A"],
        "month": [7, 0],
        "delay": [-50.0, 20.0, 1e6],
        "day": [date(2012, 12, 31), last],
    }

    def value(each: Attribute) -> object:
        if each.missing and draw.random() < 0.2:
            return None
        beyond = (each.unknown or each.clamp) and draw.random() < 0.25
        return draw.choice((others if beyond else listed)[each.name])

    return [tuple(value(each) for each in schema.attributes) for _ in range(RECORDS)]


def category(attribute: Attribute, value: object) -> int:
    """The category of a value, looked for one after the other."""
    if value is None:
        return attribute.index(attribute.missing)
    if not attribute.edges:
        text = str(value)
        return attribute.index(text if text in (*LABELS, *NUMBERS, "p", "q") else attribute.unknown)
    number = seconds_of("day", value) if isinstance(value, date) else float(str(value))
    for place in range(attribute.bins):
        if attribute.edges[place] <= number < attribute.edges[place + 1]:
            return place
    if attribute.clamp:
        return 0 if number < attribute.edges[0] else attribute.bins - 1
    return attribute.index(attribute.unknown)


def connect(rows: list[tuple[object, ...]]) -> duckdb.DuckDBPyConnection:
    """A DuckDB that holds the rows as the table `flights`."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE flights (" + ", ".join(f"{name} {kind}" for name, kind in TYPES.items()) + ")")
    connection.executemany("INSERT INTO flights VALUES (?, ?, ?, ?, ?)", rows)
    return connection


def exact_results(questions: Questions, schema: Schema, rows: list[tuple[object, ...]]) -> Results | None:
    """The exact answers to the statements, as a round would give them."""
    if not questions.statements:
        return None
    workload = compile_workload(questions.statements, schema)
    cells = [[category(a, v) for a, v in zip(schema.attributes, row, strict=True)] for row in rows]
    places = np.ravel_multi_index(tuple(np.array(cells).T), schema.sizes)
    counts = workload.record_counts(np.asarray(places, dtype=np.int64))
    values = counts * (ONE // RECORDS)
    none = np.zeros_like(values)
    return Results("r", Answers(values, np.full(len(values), AnswerMethod.LAPLACE, np.uint8), values, values, none))


def shown_rows(question: Question, schema: Schema, rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """The exact answer to a question, without the columns of intervals."""
    asked = Questions((question,))
    (frame,) = asked.answers(exact_results(asked, schema, rows), RECORDS)
    names = [each.name for each in question.outputs]
    places = [frame.names.index(name) for name in names]
    return [tuple(row[place] for place in places) for row in frame.rows()]
