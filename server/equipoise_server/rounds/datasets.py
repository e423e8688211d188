"""Registers datasets: tables of the data directory, their number of records, and the accounts that pay for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, func, select

from equipoise.errors import AlreadyExists, InvalidArgument
from equipoise.model.accounts import Budget, Danger
from equipoise.model.datasets import DatasetState, same_people_as
from equipoise.model.persons import EACH_ROW, Persons
from equipoise.model.times import to_microseconds
from equipoise.queries.padding import padded_schema
from equipoise.queries.schema import Schema
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.persons.table import records_of
from equipoise_server.datasets.progress import OnRead, unseen
from equipoise_server.datasets.source import Source, source_in
from equipoise_server.identity.names import check_name
from equipoise_server.ledger.caps import Cap
from equipoise_server.rounds.new_datasets import USUAL_ORDERS, AccountingMethod, NewDataset, new_caps
from equipoise_server.rounds.people import NewTable, Payer, check_named, open_data_account, payer
from equipoise_server.rounds.reading import logged
from equipoise_server.rounds.records import DatasetRecord
from equipoise_server.rounds.store.dataset_records import dataset_registered, registered_data
from equipoise_server.rounds.store.datasets import read_dataset
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.tables.round import dataset_versions, datasets


@dataclass(frozen=True)
class ReadTable:
    """A table as it was read for a version of a dataset: where it lies, by what it was read, and what was found."""

    source: str
    schema: Schema
    person: str
    persons: Persons
    records: int
    table: NewTable


@dataclass(frozen=True)
class Datasets:
    """The registered tables of one store and one data directory."""

    operations: Operations
    directory: Path

    def register(
        self,
        name: str,
        source: str,
        schema: Schema,
        data_cap: Budget | None,
        analyst_cap: Budget | None,
        request_id: str,
        caller: str = "",
        accounting: AccountingMethod = USUAL_ORDERS,
        *,
        people: str = "",
        new_budgets: bool = False,
        person: str = "",
        persons: Persons = EACH_ROW,
        accepted: tuple[Danger, ...] = (),
        progress: OnRead = unseen,
    ) -> DatasetRecord:
        """Register a table of the data directory. Its number of records is public from then on.

        Args:
            name: the dataset's name.
            source: the table's file, relative to the data directory.
            schema: the table's attributes; every record must fit the schema.
            data_cap: the most that all rounds on these people may cost them, epsilon and delta; None where they
                have an account.
            analyst_cap: the most that all rounds on these people may cost each analyst; None likewise.
            request_id: makes the call safe to repeat.
            caller: the operator's name.
            accounting: the Renyi orders of a new account, which never change.
            people: whose people the table holds: "new", or "same-as:" and a dataset's name. Empty only for the
                first table of a server.
            new_budgets: whether the operator knows that another dataset has, or may have had, the same table.
            person: the column with the id of each row's person; empty: each row is a person of its own.
            persons: how many records every person has, and what they are made of. Where persons may lack rows, the
                schema gets a category for records of nothing.
            accepted: the dangers of the caps that the operator knows and wants.
            progress: told how far the reading is.

        Returns:
            The dataset as it was registered.

        Raises:
            InvalidArgument: a field is wrong, a record does not fit the schema, or the caps have a danger that is
                not accepted.
            AlreadyExists: the name is taken.
        """
        schema = padded_schema(schema) if persons.padded else schema
        new = NewDataset(
            name, source, schema, data_cap, analyst_cap, accounting, new_budgets, people, person, persons, accepted
        )
        caps = new_caps(new)
        request = new.request(f"operator/{caller}", request_id)
        if (known := self.operations.answered(request, _as_registered)) is not None:
            return known
        check_name(name)
        # Both are looked at again when the dataset is written. Reading a large table for nothing takes long.
        with self.operations.store.read() as connection:
            _check_free(connection, name)
            check_named(connection, people)
        read = self.read_table(name, source, schema, person, persons, progress)
        new.check_dangers(read.records)

        def work(connection: Connection, now: datetime) -> str:
            paying = _insert(connection, new, caps, read.table, now)
            insert_version(connection, name, 1, read, now)
            registered, table = read_dataset(connection, name), read.table
            dataset_registered(connection, registered, paying.people, table.digest, table.snapshot, now, accepted)
            return name

        return self.operations.carry_out(request, work, _as_registered)

    def get(self, name: str) -> DatasetRecord:
        """Return the newest version of a dataset. Raises `NotFound`."""
        with self.operations.store.read() as connection:
            return read_dataset(connection, name)

    def read_table(
        self, name: str, source: str, schema: Schema, person: str, persons: Persons, progress: OnRead
    ) -> ReadTable:
        """Read a table, and compare it with all that are registered.

        The log tells of the progress under the dataset's name. Files are compared before the writing transaction,
        which keeps other writers waiting. Raises `InvalidArgument` as `register` does.
        """
        table_source = self._table(source, person, persons)
        # Before the counts: what changes in between is then noticed before a charge.
        snapshot = table_source.snapshot(schema)
        counts = table_source.counts(schema, logged(name, progress))
        if counts.records == 0:
            raise InvalidArgument("table", "has no records")
        table = NewTable(table_source, data_digest(counts), snapshot.digest, self.directory)
        with self.operations.store.read() as connection:
            table.datasets(connection)
        return ReadTable(source, schema, person, persons, counts.records, table)

    def table(self, dataset: DatasetRecord) -> Source:
        """Return a dataset's table, with the records that its persons have.

        Raises `InvalidArgument` if it is absent or outside the data directory.
        """
        return self._table(dataset.source, dataset.person, dataset.persons)

    def check_unchanged(self, dataset: DatasetRecord) -> None:
        """Compare a dataset's table with the registered one, before anything is charged for reading it.

        Raises:
            InvalidArgument: it has changed, is gone or out of reach, or lacks columns.
        """
        with self.operations.store.read() as connection:
            registered = registered_data(connection, dataset.name, dataset.version).snapshot
        found = self.table(dataset).snapshot(dataset.schema)
        if found.digest == registered:
            return
        seen = f"{found.seen} are others"
        if dataset.persons == EACH_ROW and found.rows not in (None, dataset.records):
            seen = f"it has {found.rows:,} rows, and had {dataset.records:,}"
        named = f"the table of version {dataset.version} of the dataset {dataset.name!r}"
        raise InvalidArgument(
            "table",
            f"{named} has changed since it was registered: {seen}. Put it back as it was, or register what it "
            f"holds now as another version: equipoise operator dataset update {dataset.name}",
        )

    def _table(self, source: str, person: str, persons: Persons) -> Source:
        return records_of(source_in(self.directory, source), person, persons)


def _insert(
    connection: Connection, new: NewDataset, caps: tuple[Cap, Cap] | None, table: NewTable, now: datetime
) -> Payer:
    """Write the dataset, and open the data account of new people. `caps`: as `new_caps` returns them."""
    _check_free(connection, new.name)
    paying = payer(connection, new.name, new.people, table, new_budgets=new.new_budgets)
    connection.execute(
        datasets.insert().values(
            name=new.name,
            account=paying.account,
            analyst_epsilon=None if caps is None else caps[1].epsilon,
            analyst_delta=None if caps is None else caps[1].delta,
            analyst_order=None if caps is None else caps[1].order,
        )
    )
    if caps is not None:
        open_data_account(connection, paying, caps, now)
    return paying


def insert_version(connection: Connection, name: str, version: int, read: ReadTable, now: datetime) -> None:
    """Write a version of a dataset, in the transaction that registers it.

    Args:
        connection: in the transaction that registers it.
        name: of the dataset.
        version: its number, from 1.
        read: what was read of the table.
        now: the time of registration.
    """
    connection.execute(
        dataset_versions.insert().values(
            dataset=name,
            version=version,
            source=read.source,
            schema=read.schema.to_json(),
            records=read.records,
            person=read.person,
            person_mode=read.persons.mode.value,
            person_records=read.persons.records,
            create_time=to_microseconds(now),
        )
    )


def _check_free(connection: Connection, name: str) -> None:
    """Raise `AlreadyExists` where a dataset has this name, in whatever case."""
    same = func.lower(datasets.c.name) == name.lower()
    if taken := connection.execute(select(datasets.c.name).where(same)).scalar():
        raise AlreadyExists(_explain_taken(read_dataset(connection, taken)))


def _explain_taken(dataset: DatasetRecord) -> str:
    """Say why a name cannot be registered, and what to do instead."""
    name = dataset.name
    match dataset.state:
        case DatasetState.ACTIVE:
            return (
                f"a dataset named {name!r} is already registered; equipoise operator dataset update adds a version"
            )
        case DatasetState.RETIRED | DatasetState.DELETED:
            return (
                f"a dataset named {name!r} was registered before and is {dataset.state}; its name is not given "
                f"again: register the table under another one, {same_people_as(name)!r} if it holds these people"
            )


def _as_registered(connection: Connection, name: str) -> DatasetRecord:
    """Return the dataset as it was when it had just been registered, which was the first answer to the request."""
    return replace(read_dataset(connection, name, 1), retire_time=None, delete_time=None)
