"""Registered tables, as far as they are public, and the answer to the question of whose people they hold."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Account, AccountCharge
from equipoise.model.persons import EACH_ROW, Persons
from equipoise.model.rounds import RoundState
from equipoise.queries.schema import Schema

NEW_PEOPLE = "new"
_SAME_AS = "same-as:"
ANSWERS = f"{NEW_PEOPLE!r}, or '{_SAME_AS}DATASET' with the name of a registered dataset"


class DatasetState(StrEnum):
    """How far the life of a dataset has come. Only the first one takes new rounds."""

    ACTIVE = "active"
    RETIRED = "retired"
    DELETED = "deleted"


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One version of a registered table; its number of records is public.

    `version`: which snapshot of the table it is, from 1. `schema`, `records` and `create_time` are the version's;
    the other times are the dataset's, None before. `account`: the account that rounds on the table are charged to.
    All versions of a dataset, and datasets of the same people, share one, which has the name of the first of them.
    Empty where it is shown to analysts. `persons`: so many of the records are each person's, in all versions.
    """

    name: str
    version: int
    schema: Schema
    records: int
    create_time: datetime
    retire_time: datetime | None = None
    delete_time: datetime | None = None
    account: str = ""
    persons: Persons = EACH_ROW

    @property
    def state(self) -> DatasetState:
        """Whether it takes rounds."""
        if self.delete_time is not None:
            return DatasetState.DELETED
        return DatasetState.ACTIVE if self.retire_time is None else DatasetState.RETIRED


@dataclass(frozen=True)
class DatasetVersion:
    """One snapshot of a dataset's table. `source_kind`: what it was read from; `attributes`: their names."""

    version: int
    source_kind: str
    records: int
    create_time: datetime
    attributes: tuple[str, ...]


@dataclass(frozen=True)
class DatasetStanding:
    """A dataset as operators see it, with both budgets of its people.

    `dataset`: its newest version, which was read from a source of `source_kind`. `data`: the data account.
    `analysts`: for each unit of protection, the analyst's account of which least is left.
    """

    dataset: Dataset
    state: DatasetState
    source_kind: str
    data: Account
    analysts: tuple[Account, ...]


@dataclass(frozen=True)
class DatasetHistory:
    """A dataset's standing with all of its versions, the oldest first."""

    standing: DatasetStanding
    versions: tuple[DatasetVersion, ...]


@dataclass(frozen=True)
class DatasetCharge:
    """What one round, session or measurement counts on the account of its dataset.

    `kind`: "round", "session" or "measurement". `charge`: "not reserved yet" where it counts when it is sealed,
    "reserved", "spent", "given back", or "never reserved". `data`: on the data account; `analyst`: on the account
    of each of its analysts alike, None where it charges none.
    """

    round_id: str
    dataset: str
    dataset_version: int
    kind: str
    mechanism: str
    state: RoundState
    charge: str
    data: AccountCharge
    analyst: AccountCharge | None = None


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
