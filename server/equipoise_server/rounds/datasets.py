"""Registers datasets: tables of the data directory, their number of records, and the budgets of their accounts."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, func, select

from equipoise.errors import AlreadyExists, InvalidArgument, WrongState
from equipoise.model.accounts import Budget
from equipoise.model.times import to_microseconds
from equipoise.queries.schema import Schema
from equipoise.records.public_facts import BUDGET
from equipoise_server.datasets.digest import data_digest
from equipoise_server.datasets.source import Source, source_in
from equipoise_server.identity.names import check_name
from equipoise_server.ledger.accounts import data_account, lost_orders, open_account
from equipoise_server.ledger.caps import Cap, Composition, at_order, checked_cap
from equipoise_server.rounds.other_budgets import NewTable, other_data_accounts
from equipoise_server.rounds.records import DatasetRecord
from equipoise_server.rounds.store.rounds import canonical, dataset_record, read_dataset
from equipoise_server.rounds.store.step_records import dataset_registered
from equipoise_server.storage.idempotency import Request, make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.paging import cut_page, page_limit
from equipoise_server.storage.tables.round import datasets


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


@dataclass(frozen=True)
class NewDataset:
    """A dataset to be registered. `source` is relative to the data directory.

    `new_budgets`: the operator knows that another dataset has the same table, or that a lost dataset may have had
    it, and that the table's records get new budgets.
    """

    name: str
    source: str
    schema: Schema
    data_cap: Budget
    analyst_cap: Budget
    accounting: AccountingMethod = USUAL_ORDERS
    new_budgets: bool = False

    def request(self, caller: str, request_id: str) -> Request:
        """Return the request to register the dataset, whose content is every field of it."""
        content = {
            "name": self.name,
            "source": self.source,
            "schema": self.schema.to_json(),
            "data_cap": BUDGET.encode(self.data_cap),
            "analyst_cap": BUDGET.encode(self.analyst_cap),
            "data_order": self.accounting.data_order,
            "analyst_order": self.accounting.analyst_order,
            "new_budgets": self.new_budgets,
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
        data_cap: Budget,
        analyst_cap: Budget,
        request_id: str,
        caller: str = "",
        accounting: AccountingMethod = USUAL_ORDERS,
        *,
        new_budgets: bool = False,
    ) -> DatasetRecord:
        """Register a table of the data directory. Its number of records is public from then on.

        Args:
            name: the dataset's name.
            source: the table's file, relative to the data directory.
            schema: the table's attributes; every record must fit the schema.
            data_cap: the most that all rounds on the dataset may cost its records, epsilon and delta.
            analyst_cap: the most that all rounds on the dataset may cost each analyst, epsilon and delta.
            request_id: makes the call safe to repeat.
            caller: the operator's name.
            accounting: the Renyi orders of the dataset's accounts, which never change.
            new_budgets: whether the operator knows that another dataset has, or may have had, the same table.

        Returns:
            The dataset as it was registered.

        Raises:
            InvalidArgument: a field is wrong, or a record does not fit the schema.
            AlreadyExists: the name is taken.
        """
        caps = (
            _counted_cap("data", data_cap, accounting.data_order),
            _counted_cap("analyst", analyst_cap, accounting.analyst_order),
        )
        new = NewDataset(name, source, schema, data_cap, analyst_cap, accounting, new_budgets)
        request = new.request(f"operator/{caller}", request_id)
        if (known := self.operations.answered(request, _as_registered)) is not None:
            return known
        check_name(name)
        table_source = self.source(source)
        counts = table_source.counts(schema)
        if counts.records == 0:
            raise InvalidArgument("table", "has no records")
        digest = data_digest(counts)
        table = NewTable(table_source, digest, self.directory)
        # Compare files before the writing transaction, which keeps other writers waiting.
        with self.operations.store.read() as connection:
            table.datasets(connection)

        def work(connection: Connection, now: datetime) -> str:
            _insert(connection, new, counts.records, caps, table, now)
            dataset_registered(connection, read_dataset(connection, name), digest, now)
            return name

        return self.operations.carry_out(request, work, _as_registered)

    def retire(self, name: str, request_id: str, caller: str = "") -> DatasetRecord:
        """Allow no new rounds on a dataset; its open rounds continue. Raises `NotFound`, `WrongState`."""

        def work(connection: Connection, now: datetime) -> str:
            if read_dataset(connection, name).retire_time is not None:
                raise WrongState("the dataset is already retired")
            retired = datasets.update().where(datasets.c.name == name).values(retire_time=to_microseconds(now))
            connection.execute(retired)
            return name

        request = make_request(f"operator/{caller}", request_id, "retire_dataset", name)
        return self.operations.carry_out(request, work, read_dataset)

    def get(self, name: str) -> DatasetRecord:
        """Return one dataset. Raises `NotFound`."""
        with self.operations.store.read() as connection:
            return read_dataset(connection, name)

    def page(self, page_size: int = 0, page_token: str = "") -> tuple[list[DatasetRecord], str]:
        """Return a page of the datasets in the order of their names, and the token of the next page."""
        limit = page_limit(page_size)
        query = select(datasets).where(datasets.c.name > page_token).order_by(datasets.c.name)
        with self.operations.store.read() as connection:
            records = [dataset_record(row) for row in connection.execute(query.limit(limit + 1))]
        return cut_page(records, limit, lambda record: record.name)

    def source(self, name: str) -> Source:
        """Return a dataset's source. Raises `InvalidArgument` if it is absent or outside the data directory."""
        return source_in(self.directory, name)


def _insert(
    connection: Connection,
    new: NewDataset,
    records: int,
    caps: tuple[Cap, Cap],
    table: NewTable,
    now: datetime,
) -> None:
    """Write the dataset, and open its data account. `caps`: of the data account and of each analyst account."""
    data_cap, analyst_cap = caps
    same = func.lower(datasets.c.name) == new.name.lower()
    if taken := connection.execute(select(datasets.c.name).where(same)).scalar():
        raise AlreadyExists(f"a dataset named {taken!r} is already registered")
    beside = other_data_accounts(connection, new.name, table, new_budgets=new.new_budgets)
    lost_of_data, lost_of_analysts = lost_orders(connection, new.name)
    _check_lost("data_order", lost_of_data, data_cap)
    _check_lost("analyst_order", lost_of_analysts, analyst_cap)
    connection.execute(
        datasets.insert().values(
            name=new.name,
            source=new.source,
            schema=new.schema.to_json(),
            records=records,
            analyst_epsilon=analyst_cap.epsilon,
            analyst_delta=analyst_cap.delta,
            analyst_order=analyst_cap.order,
            create_time=to_microseconds(now),
        )
    )
    open_account(
        connection,
        now,
        data_account(new.name),
        dataset=new.name,
        composition=Composition.SEQUENTIAL,
        cap=data_cap,
        beside=beside,
    )


def _counted_cap(whose: str, budget: Budget, order: float) -> Cap:
    return at_order(f"{whose}_order", checked_cap(f"{whose}_cap", budget.epsilon, budget.delta), order)


def _check_lost(field: str, lost: set[float], cap: Cap) -> None:
    """Raise `InvalidArgument` where losses were written off at another order, at which alone they can count."""
    for order in sorted(lost - {cap.order}):
        raise InvalidArgument(
            field, f"must be {order!r}, the order at which losses under this name were written off"
        )


def _as_registered(connection: Connection, name: str) -> DatasetRecord:
    """Return the dataset as it was when it had just been registered, which was the first answer to the request."""
    return replace(read_dataset(connection, name), retire_time=None)
