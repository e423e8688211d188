"""The expected errors of the numbers that questions show, before anything is asked.

A mean's error depends on how many records it is of. Nobody may know that before, so a number of records is
supposed for each group; the noise of the statements is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.frames import Frame
from equipoise.queries.statements import Statement
from equipoise.questions.expressions import (
    Arithmetic,
    Expression,
    GroupValue,
    Number,
    Rounded,
    Spread,
    Total,
    computed,
    measures_of,
)
from equipoise.questions.measures import PUBLIC, Counted, Measure
from equipoise.questions.question import Question

Errors = Mapping[Statement, float]


def expected_numbers(questions: Sequence[Question], errors: Errors, half_widths: Errors, records: int) -> Frame:
    """Returns the errors of what questions show, as `Questions.expected_numbers` has them.

    Args:
        questions: in order.
        errors: the mean error of each statement's answers, in records.
        half_widths: how far their intervals can reach to either side, in records; NaN where nobody knows.
        records: the number of records in the table.
    """
    rows: list[tuple[int, str, float, float, float]] = []
    for number, question in enumerate(questions, start=1):
        conditions = 1 if question.records is True else 2
        group = records / question.counting.groups / conditions
        for output in question.outputs:
            if not isinstance(output.expression, GroupValue | Number):
                supposed = _Supposed(question, errors, half_widths, group, records)
                rows.append((number, output.name, group, *supposed.errors_of(_unrounded(output.expression))))
    return Frame(
        {
            "question": np.array([row[0] for row in rows], dtype=np.int64),
            "number": [row[1] for row in rows],
            "records": np.array([row[2] for row in rows], dtype=np.float64),
            "expected_error": np.array([row[3] for row in rows], dtype=np.float64),
            "half_width": np.array([row[4] for row in rows], dtype=np.float64),
        }
    )


class _Supposed:
    """A group of `group` records, and how much the counts of it err."""

    def __init__(self, question: Question, errors: Errors, half_widths: Errors, group: float, records: int) -> None:
        self._question, self._errors, self._half_widths = question, errors, half_widths
        self._group, self._records = group, records

    def errors_of(self, expression: Expression) -> tuple[float, float]:
        """Returns the mean error of a number, and how far its interval can reach.

        Each count is moved by its own mean error, one after the other. Independent errors of a Gaussian law add up
        by their squares.
        """
        measures = tuple(dict.fromkeys(measures_of(expression)))
        whole = frozenset(_whole(expression))
        values = [self._values(each, expression, whole) for each in measures]
        rows = 1 + sum(each.size for each in values)
        counted: dict[Measure, Counted] = {}
        first = 1
        for measure, own in zip(measures, values, strict=True):
            known = self._known(measure)
            error, half = (
                (0.0, 0.0) if known else (self._most(table, measure) for table in (self._errors, self._half_widths))
            )
            moved = np.tile(own, (rows, 1))
            moved[np.arange(first, first + own.size), np.arange(own.size)] += error
            first += own.size
            moved = moved if measure.parted else moved[:, 0]
            lows, highs = (np.clip(moved + each, 0, self._records) for each in (-half, half))
            counted[measure] = Counted(moved, lows, highs, np.full(moved.shape, PUBLIC, dtype=np.uint8))
        found = computed(expression, counted)
        told, low, high = (np.broadcast_to(each, (rows,)) for each in (found.values, found.lows, found.highs))
        error = math.nan if _steps(expression) else float(np.sqrt(np.sum((told[1:] - told[0]) ** 2)))
        return error, float(np.maximum(high[0] - told[0], told[0] - low[0]))

    def _values(self, measure: Measure, expression: Expression, whole: frozenset[Measure]) -> NDArray[np.float64]:
        """Returns the counts of the supposed group: one number, or one for each category."""
        if measure.parted:
            size = self._question.schema.attribute(measure.parted).size
            valued = next(each.values.valued for each in _spreads(expression) if each.counted == measure)
            values = np.zeros(size)
            values[list(valued)] = self._group / len(valued)
            return values
        if self._known(measure):
            return np.array([self._group if all(self._question.counting.parts(measure)) else 0.0])
        full = measure.added is None and (measure.records is True or measure in whole)
        return np.array([self._group if full else self._group / 2])

    def _known(self, measure: Measure) -> bool:
        return all(isinstance(each, bool) for each in self._question.counting.parts(measure))

    def _most(self, errors: Errors, measure: Measure) -> float:
        """The largest error of the statements that count a measure."""
        parts = self._question.counting.parts(measure)
        return max(errors[each] for each in parts if not isinstance(each, bool))


def _unrounded(expression: Expression) -> Expression:
    """The same number without its rounding, which hides small errors."""
    match expression:
        case Rounded(of, _):
            return _unrounded(of)
        case Arithmetic(operator, left, right):
            return Arithmetic(operator, _unrounded(left), _unrounded(right))
    return expression


def _whole(expression: Expression) -> tuple[Measure, ...]:
    """Those measures that count all records with a value."""
    match expression:
        case Total(_, counted, _, _) | Spread(_, _, counted, _, _):
            return (counted,)
        case Arithmetic(_, left, right):
            return _whole(left) + _whole(right)
    return ()


def _spreads(expression: Expression) -> tuple[Spread, ...]:
    match expression:
        case Spread():
            return (expression,)
        case Arithmetic(_, left, right):
            return _spreads(left) + _spreads(right)
    return ()


def _steps(expression: Expression) -> bool:
    """Whether a number goes from one value of the attribute to the next: small errors do not move it."""
    return any(each.name == "QUANTILE_CONT" for each in _spreads(expression))
