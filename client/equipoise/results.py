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
from equipoise.model.results import NO_BOUND, AnswerMethod, ResultColumns
from equipoise.queries.csv_labels import csv_label
from equipoise.queries.fixed_point import GRID_BITS
from equipoise.queries.schema import Schema
from equipoise.queries.statements import LinearKind, Statement, kind_of

if TYPE_CHECKING:
    import pyarrow

UNIT = np.float64(2.0**-GRID_BITS)  # of answers and bounds; a power of two, so that conversion to float is exact


@dataclass(frozen=True)
class Answer:
    """One query's answer.

    Attributes:
        value: the fraction of the records.
        bound: with the round's confidence the value is within this distance of the truth; `inf`: nothing is
            promised.
        method: how the query was answered.
        statement: the statement's position in the workload; -1 where the workload was not given.
        cell: the labels of a marginal's cell; empty for a predicate and where the workload was not given.
    """

    value: float
    bound: float
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
        raw_values: int64[queries], the answers as they were delivered, in units of 2^-40.
        methods: uint8[queries], numbers of `AnswerMethod`.
        raw_bounds: int64[queries], the error bounds in units of 2^-40; `NO_BOUND` where none is promised.
        labels: which query is which; None where the workload was not given.

    Example:
        >>> import numpy as np
        >>> from equipoise.model.results import NO_BOUND
        >>> from equipoise.results import Results
        >>> half = 1 << 39
        >>> methods, bounds = np.array([1, 3], np.uint8), np.array([half // 8, NO_BOUND])
        >>> results = Results("r-1", np.array([half, 0]), methods, bounds)
        >>> for answer in results:
        ...     print(answer.value, "+-", answer.bound)
        0.5 +- 0.0625
        0.0 +- inf
        >>> len(results)
        2
    """

    round_id: str
    raw_values: NDArray[np.int64]
    methods: NDArray[np.uint8]
    raw_bounds: NDArray[np.int64]
    labels: Labels | None = None

    @classmethod
    def collect(cls, round_id: str, columns: Iterable[ResultColumns], labels: Labels | None = None) -> Results:
        """Joins the messages of a whole stream.

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
        results = cls(
            round_id,
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.methods for part in parts]),
            np.concatenate([part.bounds for part in parts]),
            labels,
        )
        if labels is not None and len(results) != labels.queries:
            problem = f"stand for {labels.queries:,} queries, but there are {len(results):,} results"
            raise InvalidArgument("statements", problem)
        return results

    @property
    def values(self) -> NDArray[np.float64]:
        """The answers as fractions of the records, float64[queries]."""
        return self.raw_values * UNIT

    @property
    def bounds(self) -> NDArray[np.float64]:
        """The error bounds, float64[queries], `inf` where none is promised."""
        return np.where(self.raw_bounds >= NO_BOUND, np.inf, self.raw_bounds * UNIT)

    def __len__(self) -> int:
        return len(self.raw_values)

    def __iter__(self) -> Iterator[Answer]:
        rows: Iterable[tuple[int, tuple[str, ...]]] = itertools.repeat((-1, ()), len(self))
        if self.labels is not None:
            rows = self.labels
        columns = zip(self.values.tolist(), self.bounds.tolist(), self.methods.tolist(), rows, strict=True)
        for value, bound, method, (statement, cell) in columns:
            yield Answer(value, bound, AnswerMethod(method), statement, cell)

    def counted(self) -> dict[AnswerMethod, int]:
        """Returns how many queries were answered in which way; every way has an entry."""
        return {method: int(np.count_nonzero(self.methods == method)) for method in AnswerMethod}

    def to_arrow(self) -> pyarrow.Table:
        """Returns a table with the columns query, statement, cell, value, bound, method.

        Needs the extra `arrow`.
        """
        try:
            import pyarrow  # noqa: PLC0415 - optional
        except ImportError:
            raise InvalidArgument("pyarrow", "is not installed; run: pip install 'equipoise[arrow]'") from None
        return pyarrow.table(dict(zip(COLUMNS, zip(*self._rows(), strict=True), strict=True)))

    def to_csv(self, target: str | Path | TextIO) -> None:
        """Writes the columns of `to_arrow` as CSV; a cell's labels are joined by ` / `, see `csv_label`."""
        if isinstance(target, str | Path):
            with Path(target).open("w", newline="", encoding="utf-8") as file:
                self.to_csv(file)
            return
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((query, number, csv_label(cell), *rest) for query, number, cell, *rest in self._rows())

    def to_dicts(self) -> list[dict[str, object]]:
        """Returns the columns of `to_arrow` as one dict a row, ready for JSON: no bound is None."""
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in self._rows()]
        return [row | {"bound": None if row["bound"] == math.inf else row["bound"]} for row in rows]

    def _rows(self) -> Iterator[tuple[int, int, str, float, float, str]]:
        for query, answer in enumerate(self):
            cell = " / ".join(answer.cell)
            yield query, answer.statement, cell, answer.value, answer.bound, answer.method.label


COLUMNS = ("query", "statement", "cell", "value", "bound", "method")
