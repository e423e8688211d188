"""Records the steps of a dataset's life: registration, retirement and deletion."""

from __future__ import annotations

import json
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, select

from equipoise.errors import DataLoss
from equipoise.model.accounts import Danger
from equipoise.model.times import to_microseconds
from equipoise.records.dataset_items import DataItem, DatasetItem, DeletionItem, RetirementItem
from equipoise.records.record import Audience, Kind
from equipoise.records.record_layouts import make_item, read_item
from equipoise_server.rounds.records import DatasetRecord
from equipoise_server.rounds.store.datasets import registered_cap
from equipoise_server.storage.tables.transparency import record_items, records
from equipoise_server.transparency.record_writer import journal_head, record

# What auditors see of every dataset's table, which is written once for each version, in their order.
_TABLES = (
    select(records.c.dataset, record_items.c.content)
    .join(record_items, records.c.position == record_items.c.record)
    .where(records.c.kind == Kind.DATASET_REGISTERED.value)
    .where(record_items.c.audience == Audience.AUDITOR.value)
    .order_by(records.c.position)
)


def dataset_registered(
    connection: Connection,
    dataset: DatasetRecord,
    people: str,
    digest: bytes,
    snapshot: bytes,
    now: datetime,
    accepted: tuple[Danger, ...] = (),
) -> None:
    """Record a version of a dataset: its public facts, and for auditors the table's digests and who pays for it.

    `digest`: of its counts; `snapshot`: what its state is recognised by; 32 bytes each. `people`: the operator's
    answer to the question of whose people the table holds; of a later version, those of the dataset. Only the first
    version of new people has given an account its caps. `accepted`: the dangers of these that were named.
    """
    schema = json.loads(dataset.schema.to_json())
    created, head = to_microseconds(dataset.create_time), journal_head(connection)
    public = DatasetItem(dataset.name, dataset.version, schema, dataset.records, dataset.persons, created)
    cap, order = registered_cap(connection, dataset)
    person = dataset.person or None
    private = DataItem(dataset.name, digest, snapshot, people, dataset.account, cap, order, person, accepted, head)
    items = [make_item(public, Audience.ROUND), make_item(private, Audience.AUDITOR)]
    record(connection, Kind.DATASET_REGISTERED, items, now=now, dataset=dataset.name)


def dataset_retired(connection: Connection, dataset: str, now: datetime) -> None:
    """Record that a dataset takes no more rounds and no more versions."""
    items = [make_item(RetirementItem(dataset, to_microseconds(now)), Audience.ROUND)]
    record(connection, Kind.DATASET_RETIRED, items, now=now, dataset=dataset)


def dataset_deleted(connection: Connection, dataset: str, now: datetime) -> None:
    """Record that the results, the measurements and the seeds of a dataset's rounds were erased."""
    items = [make_item(DeletionItem(dataset, to_microseconds(now)), Audience.ROUND)]
    record(connection, Kind.DATASET_DELETED, items, now=now, dataset=dataset)


def registered_digest(connection: Connection, dataset: str, version: int) -> bytes:
    """Return the digest of a version's counts as it was registered. Raises `DataLoss` without one.

    Args:
        connection: to the store.
        dataset: its name.
        version: its number, from 1.
    """
    return registered_data(connection, dataset, version).digest


def registered_data(connection: Connection, dataset: str, version: int) -> DataItem:
    """Return what is on record for auditors of a version of a dataset's table. Raises `DataLoss` without it.

    Args:
        connection: to the store.
        dataset: its name.
        version: its number, from 1.
    """
    versions = registered_tables(connection, records.c.dataset == dataset).get(dataset, [])
    if len(versions) < version:
        raise DataLoss(f"version {version} of the dataset {dataset!a} was registered without a record")
    return versions[version - 1]


def registered_tables(
    connection: Connection, which: ColumnElement[bool] | None = None
) -> dict[str, list[DataItem]]:
    """Return what is on record for auditors of all versions of tables, by the datasets' names.

    `which`: a condition on the records; None for all datasets.
    """
    tables: dict[str, list[DataItem]] = {}
    for row in connection.execute(_TABLES if which is None else _TABLES.where(which)):
        tables.setdefault(row.dataset, []).append(read_item(row.content, DataItem))
    return tables
