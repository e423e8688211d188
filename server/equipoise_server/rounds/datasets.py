"""Registers datasets: tables of the data directory, their number of records, and the accounts that pay for them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, func, select

from equipoise.errors import AlreadyExists, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.datasets import DatasetState, read_people, same_people_as
from equipoise.model.times import to_microseconds
from equipoise.queries.schema import Schema
from equipoise.records.codec import optional
from equipoise.records.public_facts import BUDGET
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.source import Source, source_in
from equipoise_server.identity.names import check_name
from equipoise_server.ledger.caps import Cap, at_order, checked_cap
from equipoise_server.rounds.people import NewTable, Payer, open_data_account, payer
from equipoise_server.rounds.reading import logged
from equipoise_server.rounds.records import DatasetRecord
from equipoise_server.rounds.store.rounds import canonical, read_dataset
from equipoise_server.rounds.store.step_records import dataset_registered
from equipoise_server.storage.idempotency import Request, make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.tables.round import dataset_versions, datasets


@dataclass(frozen=True)
class AccountingMethod:
    """The Renyi orders at which a dataset's accounts count the rounds' costs; 0: the default order of the cap."""

    data_order: float = 0.0
    analyst_order: float = 0.0

    def __post_init__(self) -> None:
        for name, order in asdict(self).items():
            if not math.isfinite(order):
                raise InvalidArgument(name, "must be finite")


USUAL_ORDERS = AccountingMethod()
_CAP = optional(BUDGET)


@dataclass(frozen=True)
class NewDataset:
    """A dataset to be registered. `source` is relative to the data directory.

    `people`: whose people it holds (`rounds.people`). The caps are None where they are those of another dataset,
    whose account has its caps already. `new_budgets`: the operator knows that another dataset has the same table,
    or that a lost dataset may have had it, and that the table's records get new budgets.
    """

    name: str
    source: str
    schema: Schema
    data_cap: Budget | None
    analyst_cap: Budget | None
    accounting: AccountingMethod = USUAL_ORDERS
    new_budgets: bool = False
    people: str = ""

    def request(self, caller: str, request_id: str) -> Request:
        """Return the request to register the dataset, whose content is every field of it."""
        content = {
            "name": self.name,
            "source": self.source,
            "schema": self.schema.to_json(),
            "data_cap": _CAP.encode(self.data_cap),
            "analyst_cap": _CAP.encode(self.analyst_cap),
            "data_order": self.accounting.data_order,
            "analyst_order": self.accounting.analyst_order,
            "new_budgets": self.new_budgets,
            "people": self.people,
        }
        return make_request(caller, request_id, "register_dataset", canonical(content))


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

        Returns:
            The dataset as it was registered.

        Raises:
            InvalidArgument: a field is wrong, or a record does not fit the schema.
            AlreadyExists: the name is taken.
        """
        new = NewDataset(name, source, schema, data_cap, analyst_cap, accounting, new_budgets, people)
        caps = _new_caps(new)
        request = new.request(f"operator/{caller}", request_id)
        if (known := self.operations.answered(request, _as_registered)) is not None:
            return known
        check_name(name)
        records, table = self.read_table(name, source, schema)

        def work(connection: Connection, now: datetime) -> str:
            paying = _insert(connection, new, caps, table, now)
            insert_version(connection, name, 1, source, schema, records, now)
            dataset_registered(connection, read_dataset(connection, name), paying.people, table.digest, now)
            return name

        return self.operations.carry_out(request, work, _as_registered)

    def get(self, name: str) -> DatasetRecord:
        """Return the newest version of a dataset. Raises `NotFound`."""
        with self.operations.store.read() as connection:
            return read_dataset(connection, name)

    def read_table(self, name: str, source: str, schema: Schema) -> tuple[int, NewTable]:
        """Return the number of records of a table, and the table, compared with all that are registered.

        The log tells of the progress under the dataset's name. Files are compared before the writing transaction,
        which keeps other writers waiting.
        """
        table_source = self.source(source)
        counts = table_source.counts(schema, logged(name))
        if counts.records == 0:
            raise InvalidArgument("table", "has no records")
        table = NewTable(table_source, data_digest(counts), self.directory)
        with self.operations.store.read() as connection:
            table.datasets(connection)
        return counts.records, table

    def source(self, name: str) -> Source:
        """Return a dataset's source. Raises `InvalidArgument` if it is absent or outside the data directory."""
        return source_in(self.directory, name)


def _insert(
    connection: Connection, new: NewDataset, caps: tuple[Cap, Cap] | None, table: NewTable, now: datetime
) -> Payer:
    """Write the dataset, and open the data account of new people. `caps`: as `_new_caps` returns them."""
    same = func.lower(datasets.c.name) == new.name.lower()
    if taken := connection.execute(select(datasets.c.name).where(same)).scalar():
        raise AlreadyExists(_taken(read_dataset(connection, taken)))
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


def insert_version(
    connection: Connection, name: str, version: int, source: str, schema: Schema, records: int, now: datetime
) -> None:
    """Write a version of a dataset, in the transaction that registers it."""
    connection.execute(
        dataset_versions.insert().values(
            dataset=name,
            version=version,
            source=source,
            schema=schema.to_json(),
            records=records,
            create_time=to_microseconds(now),
        )
    )


def _taken(dataset: DatasetRecord) -> str:
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


def _new_caps(new: NewDataset) -> tuple[Cap, Cap] | None:
    """Return the caps of a new data account and of its analysts' accounts; None where the people have an account.

    Raises `InvalidArgument` where a cap is missing, or given to people who have an account.
    """
    named = read_people(new.people) if new.people else None
    caps = []
    for whose, budget, order in (
        ("data", new.data_cap, new.accounting.data_order),
        ("analyst", new.analyst_cap, new.accounting.analyst_order),
    ):
        if named is not None:
            for field, given in ((f"{whose}_cap", budget is not None), (f"{whose}_order", order != 0)):
                if given:
                    raise InvalidArgument(field, f"must not be set: the account of {named!r} has its own already")
        elif budget is None:
            raise InvalidArgument(f"{whose}_cap", "must be set, as new people get a new account")
        else:
            cap = checked_cap(f"{whose}_cap", budget.epsilon, budget.delta)
            caps.append(at_order(f"{whose}_order", cap, order))
    return None if named is not None else (caps[0], caps[1])


def _as_registered(connection: Connection, name: str) -> DatasetRecord:
    """Return the dataset as it was when it had just been registered, which was the first answer to the request."""
    return replace(read_dataset(connection, name, 1), retire_time=None, delete_time=None)
