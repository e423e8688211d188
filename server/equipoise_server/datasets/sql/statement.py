"""The statement that counts the equal rows of a table, which SQLAlchemy writes in the dialect of an engine.

Every label and edge is a bound parameter. The statement is one GROUP BY over all attributes of the public schema.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Date,
    DateTime,
    Double,
    Float,
    Integer,
    Numeric,
    Select,
    Table,
    Text,
    TypeDecorator,
    case,
    cast,
    func,
    literal,
    select,
    type_coerce,
)
from sqlalchemy.types import TypeEngine

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema
from equipoise_server.datasets.halving import halved
from equipoise_server.datasets.label_codes import label_codes
from equipoise_server.datasets.packed_codes import words_of
from equipoise_server.datasets.universe import BELOW, MISSING, UNKNOWN

Expression = ColumnElement[Any]

# Types of times that the packages for Snowflake and Databricks have, by their classes: none is SQLAlchemy's own.
# A TIMESTAMP of Databricks is a moment, as with a time zone.
OWN_TIMES: dict[str, TypeEngine[Any]] = {
    "TIMESTAMP": DateTime(timezone=True),
    "TIMESTAMP_NTZ": DateTime(),
    "TIMESTAMP_LTZ": DateTime(timezone=True),
    "TIMESTAMP_TZ": DateTime(timezone=True),
}


def grouping(table: Table, schema: Schema) -> Select[tuple[int, ...]]:
    """Return the statement of each group of equal rows: its words (`packed_codes`), and its number of rows.

    Args:
        table: The table with its columns.
        schema: Its public attributes. Other columns are ignored.

    Raises:
        InvalidArgument: An attribute's column is missing, or its type does not fit the attribute.
    """
    words = coded_rows(table, schema).subquery()
    return select(*words.c, func.count()).group_by(*words.c)


def coded_rows(table: Table, schema: Schema, *beside: ColumnElement[Any]) -> Select[Any]:
    """Return the statement of every row's words, named `word0`, `word1` and so on, after further named columns.

    `beside`: those columns. Raises as `grouping` does.
    """
    codes = select(
        *beside,
        *(_code(table, attribute).label(f"code{axis}") for axis, attribute in enumerate(schema.attributes)),
    ).subquery()
    return select(
        *(codes.c[each.name] for each in beside),
        *(
            sum(
                ((cast(codes.c[f"code{axis}"], BigInteger) - BELOW) * factor for axis, factor in word),
                start=literal(0, BigInteger),
            ).label(f"word{place}")
            for place, word in enumerate(words_of(schema))
        ),
    )


def _code(table: Table, attribute: Attribute) -> Expression:
    """Return the expression of an attribute's code, as `universe` has them."""
    columns = [column for column in table.columns if column.name == attribute.name]
    if not columns:
        raise InvalidArgument("table", f"has no column named {attribute.name!r}")
    column = _plain(columns[0])
    if not attribute.edges:
        return _category(column, attribute)
    edges = _dates(column, attribute) if attribute.dates else _numbers(column, attribute)
    above = attribute.bins
    if isinstance(column.type, Float):
        # Some databases have NaN, as the largest number. In the others nothing is called so.
        nan = func.lower(cast(column, Text)) == "nan"
        top: Expression = case((nan, MISSING), else_=above)
    else:
        top = literal(above)
    bins: list[Expression] = [literal(place) for place in (BELOW, *range(above))]
    bins.append(top)

    def choose(place: int, below: Expression, at_or_above: Expression) -> Expression:
        return case((column < edges[place], below), else_=at_or_above)

    return case((column.is_(None), MISSING), else_=halved(len(edges), lambda place: bins[place], choose))


def _plain(column: Column[Any]) -> Expression:
    """Return a column with the type that SQLAlchemy itself has for it: packages of warehouses have own ones."""
    kind = column.type
    if isinstance(kind, Date | DateTime | Numeric | Float | Integer | Boolean):
        return column
    own = OWN_TIMES.get(type(kind).__name__)
    if own is None and isinstance(kind, TypeDecorator):
        own = kind.impl_instance
    return column if own is None else type_coerce(column, own)


def _category(column: Expression, attribute: Attribute) -> Expression:
    if isinstance(column.type, Float):
        problem = (
            "floating-point numbers, which databases write as text in different ways; give the attribute edges"
        )
        raise _unfit(column, attribute, problem)
    spellings = label_codes(attribute)
    text = case((column, "true"), else_="false") if isinstance(column.type, Boolean) else cast(column, Text)
    return case((column.is_(None), MISSING), else_=case(spellings, value=text, else_=UNKNOWN))


def _numbers(column: Expression, attribute: Attribute) -> list[Expression]:
    if not isinstance(column.type, Integer | Numeric | Float):
        raise _unfit(column, attribute, "no numbers; register a view that makes numbers of it")
    return [literal(edge, Double) for edge in attribute.edges]


def _dates(column: Expression, attribute: Attribute) -> list[Expression]:
    if not isinstance(column.type, Date | DateTime):
        raise _unfit(column, attribute, "no dates; register a view that makes dates of it")
    aware = bool(getattr(column.type, "timezone", False))
    epoch = datetime(1970, 1, 1, tzinfo=UTC if aware else None)
    return [literal(epoch + timedelta(seconds=edge), DateTime(timezone=aware)) for edge in attribute.edges]


def _unfit(column: Expression, attribute: Attribute, problem: str) -> InvalidArgument:
    return InvalidArgument("table", f"column {attribute.name!r} is of type {column.type}, which has {problem}")
