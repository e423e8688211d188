"""Finds out what the columns of a table hold, by statements that SQLAlchemy writes in the dialect of an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Date,
    DateTime,
    Float,
    Integer,
    Numeric,
    Select,
    Table,
    Text,
    case,
    cast,
    func,
    select,
)
from sqlalchemy import Column as TableColumn

from equipoise_server.datasets.columns import MAX_LABELS, Column, Values

Ask = Callable[[Select[*tuple[Any, ...]]], Sequence[Sequence[Any]]]


def columns_of(ask: Ask, table: Table) -> Iterator[Column]:
    """Yield what the columns of a table hold, in order. `ask`: returns the rows that a statement selects."""
    for column in table.columns:
        yield _column(ask, column)


def _column(ask: Ask, column: TableColumn[object]) -> Column:
    text = case((column, "true"), else_="false") if isinstance(column.type, Boolean) else cast(column, Text)
    label = text.label("label")
    frequent = select(label).where(column.is_not(None)).group_by(label).order_by(func.count().desc(), label)
    listed = tuple(str(value) for (value,) in ask(frequent.limit(MAX_LABELS + 1)))
    labels = listed if len(listed) <= MAX_LABELS else ()
    finite: ColumnElement[bool] = column.is_not(None)
    if isinstance(column.type, Float):
        finite &= func.lower(text).not_in(["nan", "infinity", "-infinity"])
    ((rows, present),) = ask(select(func.count(), func.count(case((finite, 1)))).select_from(column.table))
    missing = rows != present
    kinds = ((Integer, Values.WHOLE), (Numeric | Float, Values.NUMBERS), (Date | DateTime, Values.DATES))
    for types, values in kinds:
        if isinstance(column.type, types) and present:
            ((low, high),) = ask(select(func.min(column), func.max(column)).where(finite))
            return Column(column.name, values, labels, _number(low), _number(high), missing)
    return Column(column.name, Values.LABELS, labels, missing=missing)


def _number(value: object) -> float:
    """Return a number, or the seconds since 1970 of a date; what has no offset is in UTC."""
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime.combine(value, datetime.min.time())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return float(str(value))
