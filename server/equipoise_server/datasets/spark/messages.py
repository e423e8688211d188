"""What the server and the process that runs Spark say to one another, pickled, over the process's pipes.

The server sends one `Request`. The process answers with what was asked for, between any number of `Advance`s, and
with `Ended` or `Refused` at last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.schema import Schema
from equipoise_server.datasets.columns import Column
from equipoise_server.datasets.persons.groups import PersonColumn, RowsAPerson, Settled, Unsettled


@dataclass(frozen=True)
class Place:
    """A table as Spark finds it. `datasets.spark.description` documents the fields; `path` is absolute or a URI."""

    master: str
    path: str | None
    table: str | None
    format: str
    snapshot: str | None


@dataclass(frozen=True)
class ByRecords:
    """Asks for the groups of equal rows: `Groups`."""

    schema: Schema


@dataclass(frozen=True)
class ByPersons:
    """Asks for the rows by persons: one `Settled`, and any number of `Unsettled`."""

    schema: Schema
    column: PersonColumn


@dataclass(frozen=True)
class RowNumbers:
    """Asks how many persons have how many rows: `RowsAPerson`. `column`: of the ids."""

    column: str


@dataclass(frozen=True)
class Contents:
    """Asks what the columns hold: `Columns`."""


@dataclass(frozen=True)
class State:
    """Asks what the table's state is recognised by: `Facts`. `person`: the column of ids, or empty."""

    schema: Schema
    person: str


Question = ByRecords | ByPersons | RowNumbers | Contents | State


@dataclass(frozen=True)
class Request:
    """A question about a table."""

    place: Place
    question: Question


@dataclass(frozen=True)
class Advance:
    """How many of Spark's tasks are done, of those that it knows of."""

    done: int
    total: int


@dataclass(frozen=True)
class Groups:
    """The words (`packed_codes`) of each group of equal rows, int64[groups] each, and its rows, int64[groups]."""

    words: list[NDArray[np.int64]]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class Columns:
    """What the columns of the table hold."""

    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Facts:
    """The numbers of `sql.snapshot`, the number of rows first."""

    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Refused:
    """Why the table cannot be read, with the field; no value of the table is in the words."""

    field: str
    problem: str


@dataclass(frozen=True)
class Ended:
    """Everything has been told."""


Told = Groups | Settled | Unsettled | RowsAPerson | Columns | Facts
Answer = Advance | Told | Ended | Refused
