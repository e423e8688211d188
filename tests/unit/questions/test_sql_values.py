"""SQL of values: which statements it asks, what it refuses, and what its answers are by hand."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.errors import InvalidArgument
from equipoise.model.results import AnswerMethod, Answers
from equipoise.queries.fixed_point import ONE
from equipoise.queries.predicates import AllOf, Among, Interval
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.questions.canonical import sql_of
from equipoise.questions.question import Question
from equipoise.questions.questions import Questions
from equipoise.questions.sql import questions_from_sql
from equipoise.results import Results

EDGES = (-60.0, 0.0, 15.0, 180.0, 1500.0)
SCHEMA = Schema(
    (
        Attribute("origin", ("EWR", "JFK")),
        Attribute("delay", (*bin_labels(EDGES), "cancelled"), EDGES, missing="cancelled"),
        Attribute("seats", ("1", "2", "4", "others"), unknown="others"),
        Attribute("wind", bin_labels((0.0, 5.0, 10.0)), (0.0, 5.0, 10.0), clamp=True),
        Attribute("gate", ("1", "2"), missing="1"),
    )
)
FLOWN = Interval("delay", -np.inf, np.inf)


def asked(text: str) -> Question:
    (question,) = questions_from_sql(text, SCHEMA)
    return question


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        (
            "SELECT origin, AVG(delay) FROM f GROUP BY origin",
            (Sum("delay", ("origin",)), Marginal(("origin",), where=FLOWN)),
        ),
        (
            "SELECT SUM(LEAST(GREATEST(delay, 0), 180)) FROM f WHERE origin = 'JFK' AND delay IS NOT NULL",
            (
                Sum("delay", where=AllOf((Among("origin", ("JFK",)), FLOWN)), low=0, high=180),
                AllOf((Among("origin", ("JFK",)), FLOWN)),
            ),
        ),
        (
            "SELECT origin, MEDIAN(delay), VAR_POP(delay) AS v FROM f GROUP BY origin",
            (Marginal(("origin", "delay")),),
        ),
        ("SELECT AVG(seats) FILTER (WHERE seats IN (1, 2)) FROM f", None),
        ("SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY delay) FROM f", (Marginal(("delay",)),)),
        ("SELECT AVG(LEAST(GREATEST(wind, 0), 10)) FROM f", (Sum("wind", low=0, high=10),)),
        ("SELECT AVG(delay) / 60 AS hours FROM f HAVING MEDIAN(delay) > 0 ORDER BY SUM(delay)", None),
    ],
)
def test_what_is_asked(text: str, statements: tuple[Statement, ...] | None) -> None:
    question = asked(text)
    assert statements is None or question.statements == statements
    assert asked(sql_of(question)).statements == question.statements


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT SUM(origin) FROM f", "origin: 'origin' has categories that are no numbers"),
        ("SELECT AVG(seats) FROM f", "seats may have values that are not listed"),
        ("SELECT AVG(wind) FROM f", r"LEAST\(GREATEST\(wind, 0\), 10\)"),
        ("SELECT AVG(LEAST(wind, 5)) FROM f", "beyond its edges in its end bins"),
        ("SELECT AVG(gate) FROM f", "must be above low"),
        ("SELECT AVG(LEAST(delay, 180)) FROM f", "add WHERE delay IS NOT NULL"),
        ("SELECT AVG(LEAST(delay, 100)) FROM f", "the nearest is 15|the nearest is 180"),
        ("SELECT AVG(LEAST(LEAST(delay, 15), 180)) FROM f", "bounds are written LEAST"),
        ("SELECT AVG(LEAST(delay, 15, 180)) FROM f", "bounds are written LEAST"),
        ("SELECT AVG(LEAST(delay, origin)) FROM f", "bounds are written LEAST"),
        ("SELECT AVG(LEAST(15, delay)) FROM f", "bounds are written LEAST|takes an attribute"),
        ("SELECT AVG(delay * 2) FROM f", "nothing is computed of single records"),
        ("SELECT delay, SUM(delay) FROM f GROUP BY delay", "delay is in GROUP BY"),
        ("SELECT delay, MEDIAN(delay) FROM f GROUP BY delay", "delay is in GROUP BY"),
        ("SELECT QUANTILE_CONT(delay, 1.5) FROM f", "a level from 0 to 1"),
        ("SELECT QUANTILE_CONT(delay, origin) FROM f", "a level from 0 to 1"),
        ("SELECT QUANTILE_CONT(delay) FROM f", "a level from 0 to 1|QUANTILE_CONT"),
        ("SELECT PERCENTILE_CONT(0.5) FROM f", "a level from 0 to 1"),
        ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY delay, seats) FROM f", "orders by one attribute"),
        ("SELECT MODE() WITHIN GROUP (ORDER BY delay) FROM f", "which belongs to PERCENTILE_CONT|MODE"),
        ("SELECT VARIANCE(delay) FROM f", "VAR_POP is that of the records"),
        ("SELECT STDDEV(delay) FROM f", "STDDEV_POP is that of the records"),
        (
            "SELECT QUANTILE_DISC(delay, 0.5) FROM f",
            "QUANTILE_CONT lies between records|cannot be answered|not known",
        ),
        ("SELECT MEDIAN(DISTINCT delay) FROM f", "DISTINCT"),
        ("SELECT SUM(CASE WHEN origin = 'JFK' THEN delay END) FROM f", "a CASE that is counted gives"),
        ("SELECT LEAST(COUNT(*), 3) FROM f", "LEAST cannot be answered"),
        ("SELECT AVG(speed) FROM f", "speed"),
    ],
)
def test_what_cannot_be_computed_is_refused_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem) as refused:
        asked(text)
    assert refused.value.field.startswith("sql")


def answered(question: Question, counts: list[int], half_width: int, records: int) -> dict[str, object]:
    values = np.array(counts) * ONE // records
    width = half_width * ONE // records
    answers = Answers(
        values,
        np.full(len(values), AnswerMethod.GAUSSIAN, np.uint8),
        np.maximum(values - width, 0),
        values + width,
        np.zeros(len(values), dtype=np.int64),
    )
    (frame,) = Questions((question,)).answers(Results("r", answers), records)
    return frame.to_dicts()[0]


def test_a_mean_is_computed_from_the_sum_and_the_count_by_hand() -> None:
    """Of 1,000 flights 800 flew; their weights between 0 and 180 add up to 200: a mean of 45 minutes."""
    question = asked("SELECT AVG(LEAST(GREATEST(delay, 0), 180)) AS mean FROM f WHERE delay IS NOT NULL")
    row = answered(question, [200, 800], 10, 1000)
    assert row["mean"] == pytest.approx(45, abs=1e-6)
    error = 82.5 + 180 / 2**17  # half of the bin from 15 to 180, and half a step of the weights' grid
    assert float(str(row["mean_low"])) == pytest.approx(max(0, 180 * 190 / 810 - error), abs=0.01)
    assert float(str(row["mean_high"])) == pytest.approx(180 * 211 / 790 + error, abs=0.01)
    assert row["mean_method"] == "gaussian"


def test_a_median_lies_in_the_bins_that_may_hold_it() -> None:
    question = asked("SELECT MEDIAN(delay) AS middle FROM f")
    row = answered(question, [100, 300, 350, 50, 200], 20, 1000)
    assert row["middle"] == pytest.approx((7.5 + 97.5) / 2)  # between the middles of two bins: half are below
    assert (row["middle_low"], row["middle_high"]) == (0.0, 180.0)


def test_a_sum_that_one_where_allows_is_refused_where_another_does_not() -> None:
    allowed = "SELECT SUM(LEAST(GREATEST(delay, 0), 180)) FROM f WHERE delay IS NOT NULL"
    asked(allowed)
    with pytest.raises(InvalidArgument, match="add WHERE delay IS NOT NULL"):
        questions_from_sql(f"{allowed}; {allowed.partition(' WHERE')[0]}", SCHEMA)
