"""What a custodian has to know of its persons before it says how many records each has. All of it is private."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from equipoise.errors import InvalidArgument
from equipoise_server.datasets.persons.groups import RowsAPerson
from equipoise_server.datasets.source import source_at

PARTS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0)  # of the persons, in the order of their rows
NUMBERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Choice:
    """What a number of records a person would mean.

    `cut`: persons with more rows; `dropped`: their rows beyond it, which the mode `events` drops. `nothing`:
    records of nothing for persons with fewer rows. Noise on a count is `records` times that of one a person.
    """

    records: int
    cut: int
    dropped: int
    nothing: int


@dataclass(frozen=True)
class PersonsFound:
    """The persons of a table. `quantiles`: the rows of a person that has at least as many as such a part of all."""

    persons: int
    rows: int
    quantiles: dict[float, int]
    choices: tuple[Choice, ...]


def find_persons(table: Path, column: str) -> PersonsFound:
    """Count how many rows persons have. Raises `InvalidArgument`, with a count where rows have no person."""
    found = source_at(table).rows_a_person(column)
    if found.nameless:
        raise InvalidArgument("table", f"{found.nameless:,} rows have no person in the column {column!r}")
    if not len(found.rows):
        raise InvalidArgument("table", "has no records")
    persons = int(found.persons.sum())
    ranks = np.cumsum(found.persons)
    quantiles = {
        part: int(found.rows[np.searchsorted(ranks, max(1, int(np.ceil(part * persons))))]) for part in PARTS
    }
    largest = int(found.rows.max())
    numbers = [number for place, number in enumerate(NUMBERS) if place == 0 or NUMBERS[place - 1] < largest]
    choices = tuple(_choice(found, number) for number in numbers)
    return PersonsFound(persons, int(found.rows @ found.persons), quantiles, choices)


def _choice(found: RowsAPerson, records: int) -> Choice:
    return Choice(
        records,
        int(found.persons[found.rows > records].sum()),
        int(np.maximum(found.rows - records, 0) @ found.persons),
        int(np.maximum(records - found.rows, 0) @ found.persons),
    )
