"""What SQL is understood as, where it would be easy to mean a little more or less."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise import Attribute, Marginal, Schema, attribute
from equipoise.model.results import AnswerMethod, Answers
from equipoise.queries.fixed_point import ONE
from equipoise.queries.predicates import AllOf, Among, Interval, Predicate
from equipoise.queries.schema_checks import bin_labels
from equipoise.questions.measures import Counted
from equipoise.questions.question import Question
from equipoise.questions.questions import Questions
from equipoise.questions.sql import questions_from_sql
from equipoise.results import Results

DELAY_EDGES = (-20.0, 0.0, 15.0, 60.0)
SCHEMA = Schema(
    (
        Attribute("origin", ("EWR", "JFK", "none"), missing="none"),
        Attribute("kind", ("p", "q", "none"), missing="none"),
        Attribute("delay", bin_labels(DELAY_EDGES), DELAY_EDGES, clamp=True),
    )
)


def asked(text: str) -> Question:
    (question,) = questions_from_sql(f"SELECT {text}", SCHEMA)
    return question


def counted(condition: str) -> Predicate | None:
    """What a condition counts; None for all records or none."""
    statements = asked(f"COUNT(*) FROM t WHERE {condition}").statements
    return statements[0] if statements else None  # type: ignore[return-value]


JFK = Among("origin", ("JFK",))
CONDITIONS: dict[str, Predicate | None] = {
    "NOT origin = 'JFK'": Among("origin", ("EWR",)),
    "NOT (origin = 'JFK' AND NULL)": Among("origin", ("EWR",)),
    "NOT (origin = 'JFK' OR NULL)": None,
    "origin = 'JFK' OR NULL": JFK,
    "(origin = 'JFK') IS NOT TRUE": Among("origin", ("EWR", "none")),
    "(origin = 'JFK') IS FALSE": Among("origin", ("EWR",)),
    "NOT (origin = 'JFK' AND kind = 'p')": counted("origin = 'EWR' OR kind = 'q'"),
    "origin NOT IN ('JFK', NULL)": None,
    "delay < 0": Interval("delay", -math.inf, 0.0),
    "delay >= 15": Interval("delay", 15.0, math.inf),
    "delay >= 0 AND delay < 15": Interval("delay", 0.0, 15.0),
    "origin LIKE 'JF'": None,
    "origin LIKE '_F%'": JFK,
}


@pytest.mark.parametrize(("condition", "meant"), CONDITIONS.items(), ids=list(CONDITIONS))
def test_conditions_are_true_as_in_sql(condition: str, meant: Predicate | None) -> None:
    assert counted(condition) == meant


def test_a_branch_comes_after_those_that_are_true_and_also_after_those_that_are_neither() -> None:
    question = asked("COUNT(CASE WHEN origin = 'JFK' THEN NULL WHEN kind = 'p' THEN 1 END) FROM t")
    assert question.statements == (AllOf((Among("kind", ("p",)), Among("origin", ("EWR", "none")))),)


def test_padded_tables_count_no_records_that_stand_for_nothing() -> None:
    padded = Schema((Attribute("origin", ("EWR", "JFK", "padding"), none="padding"),))
    whole, each = questions_from_sql("SELECT COUNT(*) FROM t; SELECT origin, COUNT(*) FROM t GROUP BY 1", padded)
    assert whole.statements == (attribute("origin").isin(["EWR", "JFK"]),)
    answers = Counted(np.array([0.25, 0.5, 0.25]), np.zeros(3), np.ones(3), np.ones(3, np.uint8))
    frame = each.answer(answers, {Marginal(("origin",)): 0}, 8)
    assert (frame["origin"], list(frame["count"])) == (["EWR", "JFK"], [2.0, 4.0])


@pytest.mark.parametrize(
    ("number", "low", "high"),
    [
        ("{n} - {m}", 7, 15),
        ("{n} + {m}", 12, 20),
        ("{n} * -1", -16, -11),
        ("{n} / {m}", 11 / 4, 16),
        ("{m} / ({n} - 12)", math.nan, math.nan),
        ("ROUND({n} / 8, 0)", 1, 2),
    ],
)
def test_intervals_of_computed_numbers_hold_whatever_the_counts_are_within_theirs(
    number: str, low: float, high: float
) -> None:
    one, other = "COUNT(origin)", "COUNT(*) FILTER (WHERE kind = 'p' AND origin = 'JFK')"
    question = asked(f"{number.format(n=one, m=other)} AS x FROM t")
    starts = {statement: place for place, statement in enumerate(question.statements)}
    ends = {counted("origin IS NOT NULL"): (12, 11, 16), counted("kind = 'p' AND origin = 'JFK'"): (2, 1, 4)}
    found = [ends[statement] for statement in question.statements]  # type: ignore[index]
    values, lows, highs = (np.array(each) / 64 for each in zip(*found, strict=True))
    answers = Counted(values, lows, highs, np.full(len(starts), AnswerMethod.LAPLACE, np.uint8))
    frame = question.answer(answers, starts, 64)
    np.testing.assert_allclose(np.array([frame["x_low"], frame["x_high"]]), np.array([[low], [high]]))


def test_rows_without_a_number_satisfy_neither_a_filter_nor_its_negation() -> None:
    share = "COUNT(*) FILTER (WHERE kind = 'p') / COUNT(kind)"
    question = asked(f"origin, {share} AS x FROM t GROUP BY 1 HAVING NOT ({share} > 1)")
    nothing = np.zeros(6)
    answers = Counted(nothing, nothing, nothing, np.ones(6, np.uint8))
    starts = {statement: 3 * place for place, statement in enumerate(question.statements)}
    assert len(question.answer(answers, starts, 64)) == 0


def test_what_two_questions_share_is_asked_once() -> None:
    text = "SELECT COUNT(kind) FROM t; SELECT origin, COUNT(*) FROM t GROUP BY 1; SELECT COUNT(kind) AS n FROM t"
    questions = Questions(questions_from_sql(text, SCHEMA))
    assert questions.statements == (counted("kind IS NOT NULL"), Marginal(("origin",)))
    half = np.full(4, ONE // 2)
    answers = Answers(half, np.full(4, AnswerMethod.LAPLACE, np.uint8), half, half, half)
    first, _, last = questions.answers(Results("r", answers), 64)
    assert list(first["count"]) == list(last["n"]) == [32]
