"""The items of datasets' records, written like those of rounds (`equipoise.records.items`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.model.accounts import Budget, Danger
from equipoise.model.persons import Persons
from equipoise.records.codec import COUNT, HASH, OBJECT, REAL, TEXT, canonical_object, key, optional
from equipoise.records.item_parts import HEAD, JournalHead
from equipoise.records.public_facts import ACCEPTED, BUDGET, PERSONS


@canonical_object
class DatasetItem:
    """A registered table: one version of a dataset, from 1. `schema` is the schema file's object.

    `persons`: so many records are each person's, in all versions.
    """

    dataset: str = key("dataset", TEXT)
    version: int = key("dataset_version", COUNT)
    schema: Mapping[str, Any] = key("schema", OBJECT)
    records: int = key("records", COUNT)
    persons: Persons = key("persons", PERSONS)
    create_time: int = key("create_time", COUNT)


@canonical_object
class DataItem:
    """The digests of a registered table, and who pays for it.

    `digest`: of its counts. `snapshot`: what its state is recognised by before anything is charged.
    `people`: whose people it holds, "new" or "same-as:" and a dataset's name, as the operator said; of a later
    version, "same-as:" and the dataset's own name. `account`: the
    account that its rounds are charged to. `analyst_cap`, `analyst_order`: the cap that analysts' accounts are
    opened with, and the Renyi order of those to which rounds add; None where the people had an account. `person`:
    the column with the persons' ids; None where each row is a person. `accepted`: the dangers of the caps that the
    operator has named.
    """

    dataset: str = key("dataset", TEXT)
    digest: bytes = key("digest", HASH)
    snapshot: bytes = key("snapshot", HASH)
    people: str = key("people", TEXT)
    account: str = key("account", TEXT)
    analyst_cap: Budget | None = key("analyst_cap", optional(BUDGET))
    analyst_order: float | None = key("analyst_order", optional(REAL))
    person: str | None = key("person", optional(TEXT))
    accepted: tuple[Danger, ...] = key("accepted", ACCEPTED)
    journal: JournalHead = key("journal", HEAD)


@canonical_object
class RetirementItem:
    """That a dataset takes no more rounds and no more versions."""

    dataset: str = key("dataset", TEXT)
    time: int = key("time", COUNT)


@canonical_object
class DeletionItem:
    """That the server has forgotten a dataset: the results of its rounds, its measurements and its seeds."""

    dataset: str = key("dataset", TEXT)
    time: int = key("time", COUNT)
