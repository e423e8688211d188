"""Groups a file's rows by persons with DuckDB."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
import numpy as np

from equipoise.queries.schema import Schema
from equipoise_server.datasets.files.grouping import Relation, coded_rows
from equipoise_server.datasets.persons.groups import (
    BLOCK,
    PersonColumn,
    RowsAPerson,
    Settled,
    Unsettled,
    whole_persons,
)

_IDS = re.compile(r"VARCHAR|UUID|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER")


def person_blocks(
    connection: duckdb.DuckDBPyConnection, relation: Relation, schema: Schema, column: PersonColumn
) -> Iterator[Settled | Unsettled]:
    """Yield what `RowSource.persons` documents. Memory: of all groups of equal rows of one person, with its id."""
    words, rows = coded_rows(connection, relation, schema, f"{_person(relation, column)} AS person")
    named = [f"w{place}" for place in range(len(words))]
    columns = ", ".join(f"{word} AS {name}" for word, name in zip(words, named, strict=True))
    connection.execute(
        f"CREATE TEMP TABLE person_groups AS SELECT person, {columns}, count(*) AS n FROM {rows} GROUP BY ALL",
        list(relation.parameters),
    )
    most = column.most_rows
    settled = "count(*) = 1" if most is None else f"sum(n) <= {most}"
    connection.execute(
        f"CREATE TEMP TABLE persons AS SELECT person, sum(n)::BIGINT AS n, {settled} AS settled "
        "FROM person_groups GROUP BY person"
    )
    totals = connection.execute(
        "SELECT count(*) FILTER (person IS NOT NULL AND settled), sum(n) FILTER (person IS NULL) FROM persons"
    ).fetchall()
    shown, of_person = ", ".join(named), "FROM person_groups AS g JOIN persons AS p USING (person)"
    together = connection.execute(
        f"SELECT {shown}, sum(g.n)::BIGINT AS n, count(*) AS persons {of_person} WHERE settled GROUP BY ALL"
    ).fetchnumpy()
    *packed, counts, persons = (np.asarray(each, dtype=np.int64) for each in together.values())
    yield Settled(packed, counts, persons, int(totals[0][0]), int(totals[0][1] or 0))
    asked = connection.execute(f"SELECT person, {shown}, g.n {of_person} WHERE NOT settled ORDER BY person")
    yield from whole_persons(iter(lambda: asked.fetchmany(BLOCK), []))


def rows_a_person(connection: duckdb.DuckDBPyConnection, relation: Relation, column: str) -> RowsAPerson:
    """Count the persons with each number of rows."""
    person = _person(relation, PersonColumn(column, None))
    numbers = f"SELECT {person} AS person, count(*) AS n FROM {relation.sql} GROUP BY person"
    found = connection.execute(
        f"SELECT n, count(person), sum(n) FILTER (person IS NULL) FROM ({numbers}) GROUP BY n ORDER BY n",
        list(relation.parameters),
    ).fetchall()
    return RowsAPerson.of(found)


def _person(relation: Relation, column: PersonColumn) -> str:
    """Return the expression of a row's id as text; null for none."""
    places = [place for place, name in enumerate(relation.names) if name and name == column.name]
    if len(places) != 1:
        raise column.absent(len(places))
    if not _IDS.fullmatch(relation.types[places[0]]):
        raise column.unfit(relation.types[places[0]])
    return f"nullif(CAST(c{places[0]} AS VARCHAR), '')"
