"""A question: what it counts, in which groups, and what it shows of that, in which order."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.frames import Frame, Kind
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Statement
from equipoise.questions.conditions import RecordSet
from equipoise.questions.expressions import (
    Count,
    Expression,
    GroupValue,
    Number,
    computed,
    measures_of,
    method_label,
)
from equipoise.questions.filters import AllHold, Compared, Filter, filter_measures, filtered
from equipoise.questions.group_values import kind_of_key, values_of_key
from equipoise.questions.measures import Counted, Counting, Key, Measure


@dataclass(frozen=True)
class Output:
    """A column of the answer: a key's values, or numbers."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Order:
    """One of the things that rows are ordered by."""

    expression: Expression
    descending: bool = False
    missing_first: bool = False


@dataclass(frozen=True)
class Question:
    """One question about one table, of a schema.

    Attributes:
        table: the dataset's name, as the question has it.
        schema: of the table.
        records: which of them are counted at all.
        keys: what the rows of the answer stand for: all combinations of the keys' values.
        outputs: the columns, at least one of which is a number.
        having: which rows are shown; None for all.
        order: by what rows are ordered: noisy numbers, too. Without it they come in the schema's order.
        limit: how many rows are shown at most; None for all.
        explain: whether only what would be asked is wanted.
    """

    table: str
    schema: Schema
    records: RecordSet
    keys: tuple[Key, ...]
    outputs: tuple[Output, ...]
    having: Filter | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    explain: bool = False

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What has to be asked for it; nothing where the schema and the number of records say it all."""
        return self.counting.statements

    @property
    def sizes(self) -> tuple[tuple[Statement, int], ...]:
        """Its statements, each with the number of its answers."""
        return self.counting.sizes

    def sort(self, column: str, *, descending: bool = False, missing_first: bool = False) -> Question:
        """Returns the question with its rows in the order of a column, noisy as it is, and then as before.

        Args:
            column: one of its columns' names.
            descending: whether the largest come first.
            missing_first: whether rows without a value come before all others.

        Raises:
            InvalidArgument: there is no such column.
        """
        return replace(self, order=(Order(self._output(column), descending, missing_first), *self.order))

    def keep(self, column: str, operator: str, number: float) -> Question:
        """Returns the question with those rows alone whose number, noisy as it is, compares so with another.

        Args:
            column: the name of one of its columns of numbers.
            operator: one of `= <> < <= > >=`.
            number: what it is compared with.

        Raises:
            InvalidArgument: there is no such column, or no such operator.
        """
        left = self._output(column)
        if isinstance(left, GroupValue):
            raise InvalidArgument("column", f"{column!r} is no number; conditions on attributes belong in where()")
        compared = Compared(operator, left, Number(float(number)))
        return replace(self, having=compared if self.having is None else AllHold((self.having, compared)))

    def head(self, rows: int) -> Question:
        """Returns the question with its first rows alone; all cost the same. Raises `InvalidArgument` below 0."""
        if rows < 0:
            raise InvalidArgument("rows", "must be at least 0")
        return replace(self, limit=rows if self.limit is None else min(rows, self.limit))

    def _output(self, column: str) -> Expression:
        found = next((each.expression for each in self.outputs if each.name == column), None)
        if found is None:
            names = ", ".join(each.name for each in self.outputs)
            raise InvalidArgument("column", f"there is no {column!r}; there are {names}")
        return found

    def answer(
        self, answers: Counted, starts: Mapping[Statement, int], records: int, *, fractions: bool = False
    ) -> Frame:
        """Returns the answer as a table.

        Args:
            answers: to the statements of this question, among others, as fractions of the records.
            starts: where the answers to each statement begin.
            records: the number of records in the table.
            fractions: whether counts are shown as fractions of the records.
        """
        counted = self.counting.read(answers, starts, records)
        rows = self._rows(counted)
        columns: dict[str, Sequence[object] | NDArray[np.float64]] = {}
        kinds: dict[str, Kind] = {}
        for output in self.outputs:
            if isinstance(output.expression, GroupValue):
                values = self._key_values(output.expression.key)
                columns[output.name] = [values[row] for row in rows]
                kind = kind_of_key(self.keys[output.expression.key], self.schema)
                kinds[output.name] = "text" if kind == "range" and self.order else kind
                continue
            found = self._flat(computed(output.expression, counted))
            scale = records if fractions and isinstance(output.expression, Count) else 1
            columns[output.name] = found.values[rows] / scale
            columns[f"{output.name}_low"] = found.lows[rows] / scale
            columns[f"{output.name}_high"] = found.highs[rows] / scale
            columns[f"{output.name}_method"] = [method_label(each) for each in found.methods[rows].tolist()]
        return Frame(columns, kinds)

    @cached_property
    def counting(self) -> Counting:
        """What is counted for it, in which groups, and by which statements."""
        shown = [*(output.expression for output in self.outputs), *(each.expression for each in self.order)]
        needed = [measure for expression in shown for measure in measures_of(expression)]
        if self.having is not None:
            needed += filter_measures(self.having)
        measures: tuple[Measure, ...] = tuple(dict.fromkeys(needed))
        return Counting(self.schema, self.keys, self.records, measures)

    def _key_values(self, place: int) -> list[str | float | None]:
        """The values of a key in all rows."""
        each = values_of_key(self.keys[place], self.schema)
        choices = itertools.product(*map(range, self.counting.shape))
        return [each[choice[place]] for choice in choices]

    def _flat(self, found: Counted) -> Counted:
        shape, groups = self.counting.shape, self.counting.groups
        if found.values.shape == found.lows.shape == found.highs.shape == found.methods.shape == (groups,):
            return found
        return Counted(
            np.broadcast_to(found.values, shape).reshape(groups),
            np.broadcast_to(found.lows, shape).reshape(groups),
            np.broadcast_to(found.highs, shape).reshape(groups),
            np.broadcast_to(found.methods, shape).reshape(groups),
        )

    def _rows(self, counted: dict[Measure, Counted]) -> NDArray[np.int64]:
        """Which rows are shown, in order."""
        rows = np.arange(self.counting.groups)
        if self.having is not None:
            rows = rows[filtered(self.having, lambda each: self._flat(computed(each, counted)).values)]
        for each in reversed(self.order):  # the sort is stable
            rows = rows[_places(self._sortable(each.expression, counted)[rows], each)]
        return rows if self.limit is None else rows[: self.limit]

    def _sortable(self, expression: Expression, counted: dict[Measure, Counted]) -> NDArray[np.float64]:
        """Numbers in the order of an expression's values; NaN for those that are missing."""
        if not isinstance(expression, GroupValue):
            return self._flat(computed(expression, counted)).values
        values = self._key_values(expression.key)
        key = self.keys[expression.key]
        known = [each for each in values if each is not None]
        if key.attribute and self.schema.attribute(key.attribute).edges:
            ranks = {each: rank for rank, each in enumerate(dict.fromkeys(known))}  # bins, not their names
        else:
            numbers = not any(isinstance(each, str) for each in known)
            ranks = {each: rank for rank, each in enumerate(sorted(set(known), key=float if numbers else str))}
        return np.array([np.nan if each is None else ranks[each] for each in values], dtype=np.float64)


def _places(numbers: NDArray[np.float64], order: Order) -> NDArray[np.int64]:
    """Where the numbers stand in their order, the equal ones as they came."""
    missing = np.isnan(numbers)
    turned = np.where(missing, 0, -numbers if order.descending else numbers)
    return np.lexsort((turned, missing != order.missing_first))


def columns_of(question: Question) -> tuple[str, ...]:
    """Returns the names of the answer's columns, in order."""
    names: list[str] = []
    for output in question.outputs:
        name = output.name
        names.append(name)
        if not isinstance(output.expression, GroupValue):
            names += (f"{name}_low", f"{name}_high", f"{name}_method")
    return tuple(names)


def check_columns(question: Question) -> None:
    """Raises `InvalidArgument` where nothing is counted, or two columns of the answer have the same name."""
    if not any(True for output in question.outputs for _ in measures_of(output.expression)):
        raise InvalidArgument("columns", "nothing is counted; add COUNT(*)")
    names = [name.lower() for name in columns_of(question)]
    if len(set(names)) < len(names):
        raise InvalidArgument("columns", "two have the same name; name one by AS")
