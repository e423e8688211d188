"""One analyst's results: columns, rows, files."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import DataLoss, InvalidArgument
from equipoise.frames import Frame
from equipoise.model.results import AnswerMethod, Answers, ResultColumns
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

    def cells(self, statement: Statement) -> tuple[str, ...]:
        """Returns what each answer to a statement is called: the labels of its cell, joined by ` / `."""
        return _joined(tuple(self._categories(statement)))

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
        """How each query was answered, as numbers of `AnswerMethod`, uint8[queries]."""
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

    def frame(self, records: int | None = None) -> Frame:
        """Returns the columns `COLUMNS` as a table; what an answer does not carry is missing.

        Args:
            records: the number of records in the table, to have counts; None: fractions of the records.
        """
        numbers, cells = self._places()
        labels = np.array(["", *(method.label for method in AnswerMethod)], dtype=object)
        scale = 1 if records is None else records
        parts = (self.values, self.lows, self.highs, self.standard_errors)
        methods = labels[self.methods].tolist()
        found = (np.arange(len(self)), numbers, cells, *(part * scale for part in parts), methods)
        return Frame(dict(zip(COLUMNS, found, strict=True)))

    def to_arrow(self) -> pyarrow.Table:
        """Returns the table of `frame` for Arrow. Needs the extra `arrow`."""
        return self.frame().to_arrow()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow PyCapsule interface, by which pandas, Polars and DuckDB take results as they are."""
        return self.frame().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Returns a pandas data frame. Needs pandas and the extra `arrow`."""
        return self.frame().to_pandas()

    def to_polars(self) -> Any:
        """Returns a Polars data frame. Needs polars and the extra `arrow`."""
        return self.frame().to_polars()

    def to_csv(self, target: str | Path | TextIO) -> None:
        """Writes the table of `frame` as CSV; a cell's labels are joined by ` / `, see `csv_label`.

        What an answer does not carry is an empty field.
        """
        self.frame().to_csv(target)

    def to_dicts(self) -> list[dict[str, object]]:
        """Returns the table of `frame` as one dict a row, ready for JSON."""
        return self.frame().to_dicts()

    def _repr_html_(self) -> str:
        """The first rows as a notebook shows them."""
        return self.frame()._repr_html_()

    def _places(self) -> tuple[NDArray[np.int64], list[str]]:
        """The statement of each answer, and its cell."""
        if self.labels is None:
            return np.full(len(self), -1, dtype=np.int64), [""] * len(self)
        tables = [self.labels.cells(statement) for statement in self.labels.statements]
        sizes = np.array([len(table) for table in tables], dtype=np.int64)
        return np.repeat(np.arange(len(tables)), sizes), list(itertools.chain.from_iterable(tables))


@lru_cache(maxsize=64)  # workloads ask for the same cells again and again
def _joined(categories: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    cells = list(categories[0]) if categories else [""]
    for labels in categories[1:]:
        cells = [f"{cell} / {label}" for cell in cells for label in labels]
    return tuple(cells)


def _optional(column: NDArray[np.float64]) -> list[float | None]:
    """Returns the numbers of a column, None where it has NaN."""
    return [None if math.isnan(number) else number for number in column.tolist()]


COLUMNS = ("query", "statement", "cell", "value", "low", "high", "standard_error", "method")
