"""The statements that group a table's rows by persons, which SQLAlchemy writes in the dialect of an engine.

An id leaves the engine only where the records of its person depend on it (`persons.groups.PersonColumn`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    String,
    Subquery,
    Table,
    Text,
    Uuid,
    case,
    cast,
    func,
    select,
)

from equipoise.queries.schema import Schema
from equipoise_server.datasets.persons.groups import PersonColumn
from equipoise_server.datasets.sql.statement import coded_rows


@dataclass(frozen=True)
class PersonStatements:
    """Three statements about one state of a table.

    `totals`: how many settled persons there are, and how many rows have no id. `settled`: the words of all their
    groups of equal rows, the rows, and the persons with such rows. `unsettled`: of each group of equal rows
    of each other person its id, its words and its rows, in the order of the ids.
    """

    totals: Select[Any]
    settled: Select[Any]
    unsettled: Select[Any]


def person_statements(table: Table, schema: Schema, column: PersonColumn) -> PersonStatements:
    """Return the statements. Raises `InvalidArgument` for a column that the table lacks, or of an unfit type."""
    rows = coded_rows(table, schema, person_id(table, column).label("person")).subquery()
    words = [each.name for each in rows.c if each.name != "person"]

    def groups() -> Subquery:
        return select(*rows.c, func.count().label("n")).group_by(*rows.c).subquery()

    def persons() -> Subquery:
        own = groups()
        count, all_rows = func.count(), cast(func.sum(own.c.n), BigInteger)
        most = column.most_rows
        settled = case((count == 1 if most is None else all_rows <= most, 1), else_=0)
        listed = select(own.c.person, all_rows.label("n"), settled.label("settled"))
        return listed.group_by(own.c.person).subquery()

    each, own = persons(), groups()
    there = (each.c.person.is_not(None)) & (each.c.settled == 1)
    nameless = func.sum(case((each.c.person.is_(None), each.c.n), else_=0))
    joined = own.join(each, own.c.person == each.c.person)
    shown = [own.c[name] for name in words]
    totals: list[ColumnElement[Any]] = [func.count(case((there, 1))), cast(nameless, BigInteger)]
    return PersonStatements(
        select(*totals).select_from(each),
        select(*shown, cast(func.sum(own.c.n), BigInteger), func.count())
        .select_from(joined)
        .where(each.c.settled == 1)
        .group_by(*shown),
        select(own.c.person, *shown, own.c.n).select_from(joined).where(each.c.settled == 0).order_by(own.c.person),
    )


def rows_a_person_statement(table: Table, column: str) -> Select[Any]:
    """Return the statement of each number of rows, the persons with so many, and such rows without an id."""
    person = person_id(table, PersonColumn(column, None)).label("person")
    each = select(person).subquery()
    numbers = select(each.c.person, func.count().label("n")).group_by(each.c.person).subquery()
    nameless = func.sum(case((numbers.c.person.is_(None), numbers.c.n), else_=0))
    found = select(numbers.c.n, func.count(numbers.c.person), cast(nameless, BigInteger))
    return found.group_by(numbers.c.n).order_by(numbers.c.n)


def person_id(table: Table, column: PersonColumn) -> ColumnElement[Any]:
    """Return the expression of a row's id as text; null for none.

    Args:
        table: the table with its columns.
        column: that of the ids.

    Raises:
        InvalidArgument: the table lacks it, or its type does not fit.
    """
    columns = [each for each in table.columns if each.name == column.name]
    if not columns:
        raise column.absent()
    (found,) = columns
    if not isinstance(found.type, Integer | String | Uuid):
        raise column.unfit(found.type)
    text = cast(found, Text)
    return case((text == "", None), else_=text)
