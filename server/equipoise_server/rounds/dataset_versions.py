"""Registers versions of datasets: newer snapshots of their tables, or the tables under other schemas.

All versions of a dataset hold the same people, and have its account. Rounds name the version that they are about.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from equipoise.errors import InvalidArgument
from equipoise.model.datasets import same_people_as
from equipoise.queries.padding import padded_schema
from equipoise.queries.schema import Schema
from equipoise_server.datasets.persons.table import check_persons
from equipoise_server.datasets.progress import OnRead, unseen
from equipoise_server.rounds.datasets import Datasets, insert_version
from equipoise_server.rounds.people import check_same_people
from equipoise_server.rounds.records import DatasetRecord, check_active
from equipoise_server.rounds.store.dataset_records import dataset_registered, registered_data
from equipoise_server.rounds.store.datasets import read_dataset
from equipoise_server.rounds.store.rounds import canonical
from equipoise_server.storage.idempotency import Request, make_request


@dataclass(frozen=True)
class NewVersion:
    """Another version of a dataset. `source`, `schema`: empty and None where they are the newest version's."""

    name: str
    source: str = ""
    schema: Schema | None = None

    def request(self, caller: str, request_id: str) -> Request:
        """Return the request to register the version, whose content is every field of it."""
        schema = None if self.schema is None else self.schema.to_json()
        content = {"name": self.name, "source": self.source, "schema": schema}
        return make_request(caller, request_id, "update_dataset", canonical(content))

    def after(self, dataset: DatasetRecord) -> tuple[str, Schema]:
        """Return the source and the schema of the version that follows the newest one of a dataset."""
        schema = self.schema or dataset.schema
        return self.source or dataset.source, padded_schema(schema) if dataset.persons.padded else schema


def update_dataset(
    datasets: Datasets,
    name: str,
    source: str,
    schema: Schema | None,
    request_id: str,
    caller: str = "",
    progress: OnRead = unseen,
) -> DatasetRecord:
    """Register another version of a dataset: a newer snapshot of its table, or the table under another schema.

    Its people are those of the dataset, whose account pays for it, and who is a person stays as it was registered.
    New rounds are about the newest version; those that there are stay about theirs.

    Args:
        datasets: the registered tables.
        name: the dataset's name.
        source: the table, relative to the data directory; empty: where the newest version's lies.
        schema: the table's attributes; None: the newest version's schema.
        request_id: makes the call safe to repeat.
        caller: the operator's name.
        progress: told how far the reading is.

    Returns:
        The new version.

    Raises:
        NotFound: there is no such dataset.
        WrongState: the dataset is retired or deleted, or got another version meanwhile.
        InvalidArgument: a field is wrong, a record does not fit the schema, nothing has changed, or the table is
            known to hold people of another account.
    """
    operations, new = datasets.operations, NewVersion(name, source, schema)
    request = new.request(f"operator/{caller}", request_id)
    if (known := operations.answered(request, _as_updated)) is not None:
        return known
    before = datasets.get(name)
    check_active(before)
    place, read_by = new.after(before)
    check_persons(read_by, before.person, before.persons)
    read = datasets.read_table(name, place, read_by, before.person, before.persons, progress)

    def work(connection: Connection, now: datetime) -> str:
        newest = read_dataset(connection, name)
        check_active(newest, before.version)
        check_same_people(connection, newest, read.table)
        had = registered_data(connection, name, newest.version)
        unchanged = (read.table.digest, read.table.snapshot) == (had.digest, had.snapshot)
        if unchanged and (place, read_by) == (newest.source, newest.schema):
            raise InvalidArgument("source", f"holds what version {newest.version} of {name!r} holds already")
        version = newest.version + 1
        insert_version(connection, name, version, read, now)
        registered, table = read_dataset(connection, name), read.table
        dataset_registered(connection, registered, same_people_as(name), table.digest, table.snapshot, now)
        return canonical([name, version])

    return operations.carry_out(request, work, _as_updated)


def _as_updated(connection: Connection, kept: str) -> DatasetRecord:
    """Return the version as it was when it had just been registered."""
    name, version = json.loads(kept)
    return replace(read_dataset(connection, name, version), retire_time=None, delete_time=None)
