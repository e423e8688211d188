"""Questions put together in Python are the questions that SQL asks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from equipoise import (
    Attribute,
    Client,
    Questions,
    Schema,
    attribute,
    count,
    dummy_table,
    mean,
    quantile,
    share,
    total,
)
from equipoise.errors import InvalidArgument
from equipoise.queries.schema_checks import bin_labels
from equipoise.questions.aggregates import Aggregate
from equipoise.questions.builder import Table
from equipoise.questions.question import Question
from equipoise.questions.sql import questions_from_sql

EDGES = (-20.0, 0.0, 15.0, 60.0)
SCHEMA = Schema(
    (
        Attribute("origin", ("EWR", "JFK", "LGA")),
        Attribute("month", ("1", "2", "3")),
        Attribute("delay", bin_labels(EDGES), EDGES, clamp=True),
    )
)
FLIGHTS = Table(SCHEMA, "flights")
LATE = attribute("delay") >= 15
ALIKE = {
    "SELECT COUNT(*) FROM flights WHERE delay >= 15": FLIGHTS.where(LATE).agg(count()),
    "SELECT origin, month, COUNT(*) AS n FROM flights GROUP BY 1, 2": FLIGHTS.group_by("origin", "month").agg(
        n=count()
    ),
    "SELECT origin, COUNT(*) FROM flights WHERE delay >= 15 AND month = 1 GROUP BY 1": (
        FLIGHTS.where(LATE, attribute("month") == "1").group_by("origin").agg(count())
    ),
    "SELECT origin, COUNT(*) FILTER (WHERE delay >= 15) / COUNT(*) AS s FROM flights GROUP BY 1": (
        FLIGHTS.group_by("origin").agg(s=share(LATE))
    ),
    "SELECT ROUND(100 * COUNT_IF(delay >= 15) / COUNT(*), 1) AS p, 2 - COUNT(*) - 1 AS q FROM flights": FLIGHTS.agg(
        p=(100 * count(LATE) / count()).round(1), q=2 - count() - 1
    ),
    "SELECT 1 + COUNT(*) + 2 AS a, 1 / COUNT(*) AS b, COUNT(*) * 3 AS c FROM flights": FLIGHTS.agg(
        a=1 + count() + 2, b=1 / count(), c=count() * 3
    ),
    "SELECT origin, AVG(LEAST(GREATEST(delay, 0), 60)) AS m FROM flights WHERE month = 1 GROUP BY origin": (
        FLIGHTS.where(attribute("month") == "1").group_by("origin").agg(m=mean("delay", low=0, high=60))
    ),
    "SELECT SUM(month) FILTER (WHERE delay >= 15) / COUNT(*) AS t, MEDIAN(month) AS q FROM flights": FLIGHTS.agg(
        t=total("month", where=LATE) / count(), q=quantile("month")
    ),
    "SELECT QUANTILE_CONT(LEAST(GREATEST(delay, -20), 60), 0.9) FROM flights": FLIGHTS.agg(
        quantile("delay", 0.9, low=-20, high=60)
    ),
    "SELECT month, COUNT(*) AS n FROM flights GROUP BY 1 HAVING n > 5 AND n <= 9 ORDER BY 2 DESC, 1 LIMIT 2": (
        FLIGHTS.group_by("month")
        .agg(n=count())
        .keep("n", ">", 5)
        .keep("n", "<=", 9)
        .sort("month")
        .sort("n", descending=True)
        .head(7)
        .head(2)
    ),
}


@pytest.mark.parametrize(("text", "built"), ALIKE.items(), ids=list(ALIKE))
def test_questions_are_the_objects_that_sql_gives(text: str, built: Question) -> None:
    (asked,) = questions_from_sql(text, SCHEMA, "flights")
    assert built == asked
    assert Questions.of(built).understood == Questions.of(asked).understood


def test_numbers_without_names_are_called_as_in_sql() -> None:
    question = FLIGHTS.agg(count(), count(LATE), count() + 1, n=count())
    assert [each.name for each in question.outputs] == ["count", "count_2", "value_3", "n"]


def test_a_trial_answers_what_was_put_together() -> None:
    client = Client.local(dummy_table(SCHEMA, 3_000), SCHEMA)
    flights = client.table("r")
    question = flights.where(LATE).group_by("origin").agg(n=count()).sort("n", descending=True).head(2)
    (frame,) = client.frames("r", Questions.of(question))
    (true,) = client.truth(Questions.of(flights.where(LATE).agg(n=count())))
    assert len(frame) == 2
    assert 900 < true["n"][0] < 1_100  # type: ignore[operator]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: FLIGHTS.where(attribute("town") == "x"), "where[0]"),
        (lambda: FLIGHTS.group_by("town"), "town"),
        (lambda: FLIGHTS.group_by("origin").agg(), "nothing is counted"),
        (lambda: FLIGHTS.agg(n=count(), N=count()), "same name"),
        (lambda: FLIGHTS.agg(n=count(attribute("delay") >= 7)), "statements[0]"),
        (lambda: FLIGHTS.agg(n=count()).sort("m"), "there is no 'm'"),
        (lambda: FLIGHTS.group_by("origin").agg(n=count()).keep("origin", "=", 1), "is no number"),
        (lambda: FLIGHTS.agg(n=count()).keep("n", "~", 1), "operator"),
        (lambda: FLIGHTS.agg(n=count()).head(-1), "rows"),
        (lambda: FLIGHTS.agg(mean("origin")), "no numbers"),
        (lambda: FLIGHTS.agg(total("delay")), "give low=-20 and high=60"),
        (lambda: FLIGHTS.agg(total("delay", low=-20, high=7)), "delay.high"),
        (lambda: FLIGHTS.group_by("month").agg(mean("month")), "group_by"),
        (lambda: FLIGHTS.agg(quantile("month", 2)), "level"),
    ],
)
def test_what_cannot_be_asked_is_refused_when_it_is_written(wrong: object, said: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        wrong()  # type: ignore[operator]
    assert said in f"{refusal.value.field}: {refusal.value.problem}"


def test_aggregates_are_numbers_of_counts() -> None:
    assert isinstance(count(), Aggregate)
    january = attribute("month") == "1"
    assert FLIGHTS.agg(share(LATE, january)) == FLIGHTS.agg(count(january & LATE) / count(january))


def test_the_page_s_python_runs_in_a_trial() -> None:
    page = (Path(__file__).parents[3] / "docs" / "sql.md").read_text(encoding="utf-8")
    delays = Attribute("dep_delay", bin_labels(EDGES), EDGES, clamp=True)
    schema = Schema((SCHEMA.attribute("origin"), Attribute("month", tuple(map(str, range(1, 13)))), delays))
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        names = {"client": Client.local(dummy_table(schema), schema), "round_id": "r"}
        exec(compile(block, "a page", "exec"), names)
        assert len(names["client"].frames("r", names["questions"])) in (1, 2)  # type: ignore[attr-defined]
