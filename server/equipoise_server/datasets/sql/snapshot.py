"""The statement that recognises a table's state, which SQLAlchemy writes in the dialect of an engine.

It reads every row once, groups nothing, and returns one row of whole numbers.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, Table, cast, func, select

from equipoise.queries.schema import Schema
from equipoise_server.datasets.persons.groups import PersonColumn
from equipoise_server.datasets.sql.persons import person_id
from equipoise_server.datasets.sql.statement import coded_rows

PRIME = (1 << 31) - 1  # so that sums of 2^32 numbers below it fit into 63 bits


def snapshot_statement(table: Table, schema: Schema, person: str) -> Select[Any]:
    """Return the statement of a table's state: its rows, and sums over them that hardly two states share.

    Of each word of a row (`packed_codes`), which has the categories of its attributes, the remainder by a prime and
    the square of it are summed. A change of one row is missed where both words have the same remainder: about once
    in 2^31. Of the persons, the rows with an id and the different ids are counted: rows that change places between
    persons are missed.

    Args:
        table: the table with its columns.
        schema: its public attributes. Other columns are ignored.
        person: the column with the persons' ids; empty: each row is its own.

    Raises:
        InvalidArgument: a column is missing, or its type does not fit.
    """
    ids = [person_id(table, PersonColumn(person, None)).label("person")] if person else []
    rows = coded_rows(table, schema, *ids).subquery()
    facts: list[ColumnElement[Any]] = [func.count()]
    for each in rows.c:
        if each.name == "person":
            facts += [func.count(each), func.count(each.distinct())]
        else:
            left = func.mod(each, PRIME)
            facts += [cast(func.sum(part), BigInteger) for part in (left, func.mod(left * left, PRIME))]
    return select(*facts).select_from(rows)
