"""Finds out what the columns of a database's table hold."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Date,
    DateTime,
    Float,
    Integer,
    Numeric,
    Text,
    case,
    cast,
    func,
    select,
)
from sqlalchemy import Column as TableColumn

from equipoise_server.datasets.columns import MAX_LABELS, Column, Values
from equipoise_server.datasets.database_table import reflected


def columns_of(connection: Connection, name: str, namespace: str | None) -> Iterator[Column]:
    """Yield the columns of a table or view, in order. Raises `NoSuchTableError`."""
    for column in reflected(connection, name, namespace).columns:
        yield _column(connection, column)


def _column(connection: Connection, column: TableColumn[object]) -> Column:
    text = case((column, "true"), else_="false") if isinstance(column.type, Boolean) else cast(column, Text)
    label = text.label("label")
    frequent = select(label).where(column.is_not(None)).group_by(label).order_by(func.count().desc(), label)
    listed = tuple(str(value) for value in connection.execute(frequent.limit(MAX_LABELS + 1)).scalars())
    labels = listed if len(listed) <= MAX_LABELS else ()
    finite: ColumnElement[bool] = column.is_not(None)
    if isinstance(column.type, Float):
        finite &= func.lower(text).not_in(["nan", "infinity", "-infinity"])
    rows, present = connection.execute(
        select(func.count(), func.count(case((finite, 1)))).select_from(column.table)
    ).one()
    missing = rows > present
    kinds = ((Integer, Values.WHOLE), (Numeric | Float, Values.NUMBERS), (Date | DateTime, Values.DATES))
    for types, values in kinds:
        if isinstance(column.type, types) and present:
            low, high = connection.execute(select(func.min(column), func.max(column)).where(finite)).one()
            return Column(column.name, values, labels, _number(low), _number(high), missing)
    return Column(column.name, Values.LABELS, labels, missing=missing)


def _number(value: object) -> float:
    """Return a number, or the seconds since 1970 of a date; what has no offset is in UTC."""
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime.combine(value, datetime.min.time())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return float(str(value))
