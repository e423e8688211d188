"""Reads registered datasets and their versions from the store."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, Select, func, select

from equipoise.errors import DataLoss, InvalidArgument, NotFound
from equipoise.model.accounts import Budget
from equipoise.model.persons import PersonMode, Persons
from equipoise.model.times import from_microseconds
from equipoise.queries.schema import Schema
from equipoise_server.rounds.records import DatasetRecord, RoundRecord
from equipoise_server.storage.tables.round import dataset_versions, datasets

NO_DATASET = "there is no such dataset"


def read_dataset(connection: Connection, name: str, version: int = 0) -> DatasetRecord:
    """Return one version of a dataset; 0: the newest one. Raises `NotFound`.

    Args:
        connection: to the store.
        name: of the dataset.
        version: its number, from 1; 0: the newest one.
    """
    query = all_versions().where(datasets.c.name == name)
    wanted = query.where(dataset_versions.c.version == version) if version else query
    row = connection.execute(wanted.order_by(dataset_versions.c.version.desc()).limit(1)).first()
    if row is None:
        raise NotFound(NO_DATASET)
    return dataset_record(row)


def dataset_of(connection: Connection, record: RoundRecord) -> DatasetRecord:
    """Return the version of a dataset that a round is about. Raises `NotFound`."""
    return read_dataset(connection, record.terms.dataset, record.dataset_version)


def all_versions() -> Select[Any]:
    """The rows of `datasets` and of their versions together, as `dataset_record` reads them."""
    joined = datasets.join(dataset_versions, dataset_versions.c.dataset == datasets.c.name)
    return select(datasets, dataset_versions).select_from(joined)


def most_people(connection: Connection, account: str) -> int:
    """Return how many people the largest table holds of all that were registered on an account; 0 without one."""
    people = func.max(dataset_versions.c.records // dataset_versions.c.person_records)
    joined = datasets.join(dataset_versions, dataset_versions.c.dataset == datasets.c.name)
    most = select(people).select_from(joined).where(datasets.c.account == account)
    return connection.execute(most).scalar_one() or 0


def registered_cap(connection: Connection, dataset: DatasetRecord) -> tuple[Budget | None, float | None]:
    """Return the cap, with its Renyi order, that a version gave to the analysts' accounts of its people.

    None where the people had an account: so had those of any later version.
    """
    if dataset.version > 1:
        return None, None
    caps = datasets.c.analyst_epsilon, datasets.c.analyst_delta, datasets.c.analyst_order
    epsilon, delta, order = connection.execute(select(*caps).where(datasets.c.name == dataset.name)).one()
    return None if epsilon is None else Budget(epsilon, delta), order


def dataset_record(row: Row[Any]) -> DatasetRecord:
    """Return the version of a row of `all_versions`. Raises `DataLoss` for values that nothing here wrote."""
    try:
        schema = Schema.from_json(row.schema)
        persons = Persons(PersonMode(row.person_mode), row.person_records)
    except (InvalidArgument, ValueError):
        raise DataLoss(f"the dataset {row.name!a} is damaged") from None
    return DatasetRecord(
        name=row.name,
        account=row.account,
        version=row.version,
        source=row.source,
        schema=schema,
        records=row.records,
        person=row.person,
        persons=persons,
        create_time=from_microseconds(row.create_time),
        retire_time=None if row.retire_time is None else from_microseconds(row.retire_time),
        delete_time=None if row.delete_time is None else from_microseconds(row.delete_time),
    )
