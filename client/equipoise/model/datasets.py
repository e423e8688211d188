"""Registered tables, as far as they are public, and the answer to the question of whose people they hold."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from equipoise.errors import InvalidArgument
from equipoise.model.persons import EACH_ROW, Persons
from equipoise.queries.schema import Schema

NEW_PEOPLE = "new"
_SAME_AS = "same-as:"
ANSWERS = f"{NEW_PEOPLE!r}, or '{_SAME_AS}DATASET' with the name of a registered dataset"


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A registered table; its number of records is public. Where it is retired, no new rounds can be opened.

    `account`: the account that rounds on the table are charged to. Datasets of the same people share one, which has
    the name of the first of them. Empty where it is shown to analysts. `persons`: so many of the records are each
    person's.
    """

    name: str
    schema: Schema
    records: int
    create_time: datetime
    retire_time: datetime | None = None
    account: str = ""
    persons: Persons = EACH_ROW


def same_people_as(dataset: str) -> str:
    """Return the answer that a table holds people of a registered dataset."""
    return _SAME_AS + dataset


def read_people(people: str) -> str | None:
    """Return the dataset that an answer names; None for new people. Raises `InvalidArgument` for any other text."""
    if people == NEW_PEOPLE:
        return None
    named = people.removeprefix(_SAME_AS)
    if not named or named == people:
        raise InvalidArgument("people", f"must be {ANSWERS}")
    return named
