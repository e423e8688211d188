"""The questions that an analyst has kept are those that the statements of its session commit to, and come to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness.small_custodian import STATEMENTS, Told
from harness.verifying import found, log_of, papers

from equipoise.queries.statements import Statement
from equipoise.records.bundle import Bundle
from equipoise.verification.checks import Check, CheckFailed, VerifierInputs, verify
from equipoise.verification.question_checks import OwnQuestions

FIRST = b"-- understood as: SELECT colour, size, COUNT(*) AS n FROM shop GROUP BY colour, size\n"
OTHER = FIRST.replace(b" n ", b" m ")
LAST = b"-- understood as: SELECT COUNT(*) AS n FROM shop WHERE colour = 'red'\n"
PLAIN = Told(slots=(0, 4, 8))
ASKED = replace(PLAIN, translated={0: FIRST, 1: FIRST, 2: LAST})


def own(understood: bytes, statements: tuple[Statement, ...] | None = None) -> OwnQuestions:
    """Questions as they were kept, in a file of that name."""
    return OwnQuestions(understood, statements, "kept.sql")


def said(bundle: Bundle, inputs: VerifierInputs) -> str:
    """What the check of the workload says, whether it holds or not."""
    told: dict[Check, str] = {}
    try:
        verify(bundle.to_bytes(), inputs, told.__setitem__)
    except CheckFailed as failed:
        told[failed.check] = failed.problem
    return told[Check.WORKLOAD]


def test_all_questions_that_were_kept_are_compared() -> None:
    bundle = ASKED.bundle(log_of())
    kept = [own(FIRST, STATEMENTS[:2]), own(LAST, STATEMENTS[2:])]
    for questions, told in (
        (kept, "; 3 translated from your own questions, as they commit to"),
        (kept[1:], "; 1 translated from your own questions, as they commit to; the questions that 2 were"),
        ([own(FIRST)], "; 2 translated from your own questions"),
        ([], "; the questions that 3 were translated from are not compared"),
    ):
        assert found(bundle, papers(questions=questions)) is None
        assert told in said(bundle, papers(questions=questions))
    assert "translated" not in said(PLAIN.bundle(log_of()), papers(statements=STATEMENTS))


@pytest.mark.parametrize("told", [ASKED, PLAIN, replace(ASKED, translated={0: FIRST + FIRST})])
def test_questions_that_nothing_commits_to_are_other_questions(told: Told) -> None:
    """A custodian who signs for other questions, or for none; or a file that was changed after it was kept."""
    bundle = told.bundle(log_of())
    inputs = papers(statements=STATEMENTS, questions=[own(OTHER, STATEMENTS[:2])])
    assert found(bundle, inputs) is Check.WORKLOAD
    assert "no statement of the session commits to kept.sql: other questions were asked" in said(bundle, inputs)


@pytest.mark.parametrize("statements", [STATEMENTS[:1], STATEMENTS[1:], ()])
def test_questions_must_come_to_the_statements_that_commit_to_them(statements: tuple[Statement, ...]) -> None:
    bundle, inputs = ASKED.bundle(log_of()), papers(questions=[own(FIRST, statements)])
    assert found(bundle, inputs) is Check.WORKLOAD
    assert "commits to kept.sql, which come to other statements: they were translated" in said(bundle, inputs)


def test_the_kept_receipt_covers_what_statements_commit_to() -> None:
    """So a custodian cannot take a commitment away, or put one there, even where no questions were kept."""
    log = log_of()
    kept = ASKED.receipts(log)[-1]
    assert found(ASKED.bundle(log_of()), papers(receipt=kept)) is None
    for told in (PLAIN, replace(ASKED, translated={**ASKED.translated, 0: OTHER})):
        assert found(told.bundle(log_of()), papers(receipt=kept)) is Check.RECEIPT


def test_questions_without_any_answer_are_none() -> None:
    nothing = replace(PLAIN, statements=None).bundle(log_of())
    assert found(nothing, papers(questions=[own(FIRST)])) is Check.WORKLOAD
