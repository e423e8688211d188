"""Several questions that are asked together: one workload, and a table of answers for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.frames import Frame
from equipoise.queries.statements import Statement, Sum
from equipoise.questions.bulk import all_of_which_stays
from equipoise.questions.canonical import sql_of, statement_sql
from equipoise.questions.expected_numbers import expected_numbers
from equipoise.questions.measures import Counted
from equipoise.questions.question import Question
from equipoise.results import Results

Numbers = NDArray[np.float64]
UNDERSTOOD = "-- understood as: "  # before each question, in comments of SQL


@dataclass(frozen=True)
class Questions:
    """Questions about one table, in order; nothing of them has been asked yet.

    `text`: the SQL as it was typed; empty where they were put together in Python.
    """

    items: tuple[Question, ...]
    text: str = field(default="", compare=False, repr=False)

    @classmethod
    def of(cls, *items: Question) -> Questions:
        """Returns some questions about one table, to be asked together."""
        return cls(items)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Question]:
        return iter(self.items)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """What has to be asked, once each, in the order in which the questions need it.

        Empty where the schema and the number of records say it all.
        """
        with all_of_which_stays():
            return tuple(dict.fromkeys(each for question in self.items for each in question.statements))

    @cached_property
    def understood(self) -> tuple[str, ...]:
        """Each question as SQL that says exactly what will be counted."""
        return tuple(map(sql_of, self.items))

    @property
    def as_comments(self) -> str:
        """What was understood, a comment of SQL for each question, to which a receipt commits."""
        return "".join(f"{UNDERSTOOD}{' '.join(each.splitlines())}\n" for each in self.understood)

    @property
    def kept(self) -> str:
        """`as_comments`, an empty line, and the SQL as it was typed or understood, which an analyst keeps."""
        sql = self.text or ";\n".join(self.understood)
        return f"{self.as_comments}\n{sql}"

    def expected(self, error: Numbers | float, half_width: Numbers | float, records: int) -> Frame:
        """Returns what each statement is expected to err by: a row each, with the questions that need it.

        Args:
            error: the mean error that is expected of an answer, as a fraction of the records; one for each of
                `statements`, or the same for all.
            half_width: how far the interval of an answer can reach to either side, alike; NaN where nobody knows.
            records: the number of records in the table.

        Returns:
            Columns `questions`, their numbers from 1; `statement`, in SQL; `answers`, how many it has; `unit`, the
            attribute that is added up, or records; `expected_error` and `half_width`, in this unit; and `binning`,
            by how much a record's value may differ from what its bin stands for, which widens the interval of a sum
            for each record that is added up. A sum whose values do not begin at 0 is told with a count: the numbers
            hold at most what both err by.
        """
        users: dict[Statement, list[str]] = {}
        sizes: dict[Statement, int] = {}
        for number, question in enumerate(self.items, start=1):
            for statement, size in question.sizes:
                users.setdefault(statement, []).append(str(number))
                sizes[statement] = size
        schema = self.items[0].schema
        values = [each.values(schema) if isinstance(each, Sum) else None for each in users]
        spans = np.array([1.0 if each is None else float(each.span) for each in values])
        scales = spans + [0.0 if each is None else abs(float(each.low)) for each in values]
        whole = np.array([0.0 if each is None else float(each.span) for each in values])  # a sum is rounded down
        return Frame(
            {
                "questions": [", ".join(dict.fromkeys(each)) for each in users.values()],
                "statement": [statement_sql(each, self.items[0]) for each in users],
                "answers": np.array([*sizes.values()], dtype=np.int64),
                "unit": [each.attribute if isinstance(each, Sum) else "records" for each in users],
                "expected_error": scales * (np.minimum(1.0, error) * records),
                "half_width": scales * (np.minimum(1.0, half_width) * records) + whole,
                "binning": np.array([0.0 if each is None else float(each.error) for each in values]),
            }
        )

    def expected_numbers(self, error: Numbers | float, half_width: Numbers | float, records: int) -> Frame:
        """Returns what the numbers that the questions show, such as a mean, are expected to err by.

        What a mean errs by depends on how many records it is of, which nobody knows before. The numbers hold for
        groups of `records`: all records are shared out evenly over the groups, each condition holds for half of
        them, and values are in the middle of their range, or evenly over their categories where these are counted
        one by one. A mean of a tenth as many records errs ten times as much.

        Args:
            error: as for `expected`.
            half_width: as for `expected`.
            records: the number of records in the table.

        Returns:
            Columns `question`, its number from 1; `number`, the column's name; `records` of a group that WHERE
            leaves; `expected_error`, the mean error by noise; and `half_width`, how far an interval can reach to
            either side, with what bins hide. Of QUANTILE_CONT no mean error is told (NaN).
        """
        shape = (len(self.statements),)
        errors, reaches = (
            dict(
                zip(self.statements, np.broadcast_to(np.minimum(1.0, each) * records, shape).tolist(), strict=True)
            )
            for each in (error, half_width)
        )
        return expected_numbers(self.items, errors, reaches, records)

    def answers(self, results: Results | None, records: int, *, fractions: bool = False) -> tuple[Frame, ...]:
        """Returns the answer to each question.

        Args:
            results: the answers to `statements`, in order; None where there are none.
            records: the number of records in the table.
            fractions: whether counts are shown as fractions of the records.

        Raises:
            InvalidArgument: the results are not those of these statements.
        """
        answers = _columns(results)
        starts: dict[Statement, int] = {}
        first = 0
        for question in self.items:
            for statement, size in question.sizes:
                if statement not in starts:
                    starts[statement] = first
                    first += size
        if first != len(answers.values):
            problem = f"are {len(answers.values):,}, but the questions have {first:,}"
            raise InvalidArgument("results", problem)
        return tuple(each.answer(answers, starts, records, fractions=fractions) for each in self.items)


def comments_before(sql: str) -> str:
    """Returns the comments with which SQL begins, as `Questions.as_comments` writes them; empty for none.

    Args:
        sql: a text, as the profile keeps it beside a receipt.
    """
    lines = sql.splitlines(keepends=True)
    return "".join(itertools.takewhile(lambda line: line.startswith(UNDERSTOOD), lines))


def _columns(results: Results | None) -> Counted:
    if results is None:
        none = np.zeros(0)
        return Counted(none, none, none, np.zeros(0, dtype=np.uint8))
    return Counted(results.values, results.lows, results.highs, results.methods)
