"""One analyst's results: columns, rows, files."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import DataLoss, InvalidArgument
from equipoise.model.results import AnswerMethod, Answers, ResultColumns
from equipoise.queries.csv_labels import csv_label
from equipoise.queries.fixed_point import GRID_BITS
from equipoise.queries.schema import Schema
from equipoise.queries.statements import LinearKind, Statement, kind_of

if TYPE_CHECKING:
    import pyarrow

UNIT = np.float64(2.0**-GRID_BITS)  # of answers and intervals; a power of two, so that conversion to float is exact


@dataclass(frozen=True)
class Answer:
    """One query's answer.

    Attributes:
        value: the fraction of the records. An unbiased one may lie below 0 or above 1.
        low: the lower end of its interval; None where it has none. With the round's confidence the truths of all
            queries of the round lie in their intervals.
        high: the upper end.
        standard_error: the standard deviation of the noise in the measurement from which the interval is made;
            None where the law of no noise is known. A value fitted to the measurement usually errs less.
        method: how the query was answered.
        statement: the statement's position in the workload; -1 where the workload was not given.
        cell: the labels of a marginal's cell; empty for a predicate and where the workload was not given.
    """

    value: float
    low: float | None
    high: float | None
    standard_error: float | None
    method: AnswerMethod
    statement: int = -1
    cell: tuple[str, ...] = ()


@dataclass(frozen=True)
class Labels:
    """Which query is which: the schema and the statements that were submitted."""

    schema: Schema
    statements: tuple[Statement, ...]

    @property
    def queries(self) -> int:
        """The number of queries of all statements together."""
        return sum(math.prod(map(len, self._categories(statement))) for statement in self.statements)

    def __iter__(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yields for every query its statement's position and its cell."""
        for number, statement in enumerate(self.statements):
            for cell in itertools.product(*self._categories(statement)):
                yield number, cell

    def _categories(self, statement: Statement) -> list[tuple[str, ...]]:
        """Returns the categories of each attribute whose combinations are the statement's cells."""
        kind = kind_of(statement)
        names = kind.cells(statement) if isinstance(kind, LinearKind) else ()
        return [self.schema.attribute(name).categories for name in names]


@dataclass(frozen=True, eq=False)
class Results:
    """All of one analyst's answers in a round, in the order of its workload.

    Attributes:
        round_id: the round.
        answers: as they were delivered, in units of 2^-40.
        labels: which query is which; None where the workload was not given.

    Example:
        >>> import numpy as np
        >>> from equipoise.model.results import AnswerMethod, Answers
        >>> from equipoise.results import Results
        >>> half, none = 1 << 39, 0
        >>> methods = np.array([AnswerMethod.SYNOPSIS, AnswerMethod.UNCERTIFIED], np.uint8)
        >>> lows, highs = np.array([half - 4, none]), np.array([half + half // 2, none])
        >>> results = Results("r-1", Answers(np.array([half, 0]), methods, lows, highs, np.array([none, none])))
        >>> for answer in results:
        ...     print(answer.value, answer.high, answer.method.label)
        0.5 0.75 synopsis
        0.0 None uncertified
        >>> len(results)
        2
    """

    round_id: str
    answers: Answers
    labels: Labels | None = None

    @classmethod
    def collect(cls, round_id: str, columns: Iterable[ResultColumns], labels: Labels | None = None) -> Results:
        """Joins the messages of a whole stream.

        Args:
            round_id: The round that every message must be of.
            columns: The messages, in order.
            labels: What each query asks, one label a query; None leaves the answers without labels.

        Raises:
            DataLoss: a message is missing, or not of this round.
            InvalidArgument: the labels are for another number of queries.
        """
        parts: list[ResultColumns] = []
        for part in columns:
            if part.round_id != round_id or part.sequence != len(parts) + 1 or (parts and parts[-1].last):
                raise DataLoss("a result message is not the next one of this round")
            parts.append(part)
        if not parts or not parts[-1].last:
            raise DataLoss("the result stream ended before its last message")
        results = cls(round_id, Answers.join(part.answers for part in parts), labels)
        results.check_labels()
        return results

    def check_labels(self) -> None:
        """Raises `InvalidArgument` where the labels are for another number of queries."""
        if self.labels is not None and len(self) != self.labels.queries:
            problem = f"stand for {self.labels.queries:,} queries, but there are {len(self):,} results"
            raise InvalidArgument("statements", problem)

    @property
    def values(self) -> NDArray[np.float64]:
        """The answers as fractions of the records, float64[queries]."""
        return self.answers.values * UNIT

    @property
    def methods(self) -> NDArray[np.uint8]:
        """How each query was answered, uint8[queries]: numbers of `AnswerMethod`."""
        return self.answers.methods

    @property
    def lows(self) -> NDArray[np.float64]:
        """The lower ends of the intervals, float64[queries]; NaN where there is none."""
        return np.where(self.answers.certified, self.answers.lows * UNIT, np.nan)

    @property
    def highs(self) -> NDArray[np.float64]:
        """The upper ends of the intervals, float64[queries]; NaN where there is none."""
        return np.where(self.answers.certified, self.answers.highs * UNIT, np.nan)

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """The standard errors, float64[queries]; NaN where there is none."""
        return np.where(self.answers.measured, self.answers.standard_errors * UNIT, np.nan)

    def __len__(self) -> int:
        return len(self.answers)

    def __iter__(self) -> Iterator[Answer]:
        rows: Iterable[tuple[int, tuple[str, ...]]] = itertools.repeat((-1, ()), len(self))
        if self.labels is not None:
            rows = self.labels
        optional = (_optional(column) for column in (self.lows, self.highs, self.standard_errors))
        columns = zip(self.values.tolist(), *optional, self.methods.tolist(), rows, strict=True)
        for value, low, high, error, method, (statement, cell) in columns:
            yield Answer(value, low, high, error, AnswerMethod(method), statement, cell)

    def counted(self) -> dict[AnswerMethod, int]:
        """Returns how many queries were answered in which way; every way has an entry."""
        return {method: int(np.count_nonzero(self.methods == method)) for method in AnswerMethod}

    def to_arrow(self) -> pyarrow.Table:
        """Returns a table with the columns `COLUMNS`; what an answer does not carry is null.

        Needs the extra `arrow`.
        """
        try:
            import pyarrow  # noqa: PLC0415 - optional
        except ImportError:
            raise InvalidArgument("pyarrow", "is not installed; run: pip install 'equipoise[arrow]'") from None
        return pyarrow.table(dict(zip(COLUMNS, zip(*self._rows(), strict=True), strict=True)))

    def to_csv(self, target: str | Path | TextIO) -> None:
        """Writes the columns of `to_arrow` as CSV; a cell's labels are joined by ` / `, see `csv_label`.

        What an answer does not carry is an empty field.
        """
        if isinstance(target, str | Path):
            with Path(target).open("w", newline="", encoding="utf-8") as file:
                self.to_csv(file)
            return
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((query, number, csv_label(cell), *rest) for query, number, cell, *rest in self._rows())

    def to_dicts(self) -> list[dict[str, object]]:
        """Returns the columns of `to_arrow` as one dict a row, ready for JSON."""
        return [dict(zip(COLUMNS, row, strict=True)) for row in self._rows()]

    def _rows(self) -> Iterator[tuple[int, int, str, float, float | None, float | None, float | None, str]]:
        for query, answer in enumerate(self):
            cell = " / ".join(answer.cell)
            numbers = answer.value, answer.low, answer.high, answer.standard_error
            yield query, answer.statement, cell, *numbers, answer.method.label


def _optional(column: NDArray[np.float64]) -> list[float | None]:
    """Returns the numbers of a column, None where it has NaN."""
    return [None if math.isnan(number) else number for number in column.tolist()]


COLUMNS = ("query", "statement", "cell", "value", "low", "high", "standard_error", "method")
