"""What an operator does with tables: registers, updates, retires and deletes them, and looks at their budgets."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.clients.admission import AdmissionClient
from equipoise.clients.analyst import fresh_request_id
from equipoise.clients.following import LONG_SECONDS, OnProgress, followed
from equipoise.model.accounts import Account, Budget, Danger, JournalEntry
from equipoise.model.datasets import Dataset, DatasetCharge, DatasetHistory, DatasetStanding
from equipoise.model.persons import EACH_ROW, Persons
from equipoise.queries.schema import Schema
from equipoise.v1 import operator_pb2
from equipoise.wire import workloads
from equipoise.wire.accounts import account_from_message, budget_to_message, journal_entry_from_message
from equipoise.wire.datasets import (
    charge_from_message,
    dataset_from_message,
    history_from_message,
    standing_from_message,
)
from equipoise.wire.persons import PERSONS
from equipoise.wire.terms import DANGERS


class DatasetClient(AdmissionClient):
    """The part of an operator's client that is about tables. Thread-safe."""

    def register_dataset(
        self,
        name: str,
        source: str,
        schema: Schema,
        data_cap: Budget | None = None,
        analyst_cap: Budget | None = None,
        request_id: str | None = None,
        data_order: float = 0,
        analyst_order: float = 0,
        *,
        people: str = "",
        new_budgets: bool = False,
        person: str = "",
        persons: Persons = EACH_ROW,
        accepted: tuple[Danger, ...] = (),
        on_progress: OnProgress | None = None,
    ) -> Dataset:
        """Registers a table, and opens an account for new people in it.

        Args:
            name: the dataset's name.
            source: the table's file, relative to the server's data directory.
            schema: the attributes, which must be columns of the table.
            data_cap: the most that all rounds together may cost a person; None where the people have an account.
            analyst_cap: the most that they may cost any one analyst; None in the same case.
            request_id: makes the call safe to repeat; None: a fresh one.
            data_order: the Renyi order at which the data account counts, for good; 0: the cap's usual one.
            analyst_order: the same for the analysts' accounts to which rounds add.
            people: whose people the table holds: "new", or "same-as:" and a registered dataset, with which it then
                shares one account for ever. May be left out for the first table of a server alone.
            new_budgets: gives the records budgets of their own although another dataset has, or a restored store
                may have lost, the same table. This is journaled.
            person: the column of the table with the id of each row's person; empty: each row is its own person.
            persons: how many records every person has, and what they are made of.
            accepted: the dangers of the caps that the operator knows and wants.
            on_progress: called, from another thread, with how far the server is.

        Raises:
            InvalidArgument: the table does not fit the schema, and the message counts the values by attribute; or
                `people` does not say whose it is, or says "new" wrongly.
            AlreadyExists: the name is taken.
        """
        request = operator_pb2.RegisterDatasetRequest(
            name=name,
            source=source,
            schema=workloads.schema_to_message(schema),
            data_cap=None if data_cap is None else budget_to_message(data_cap),
            analyst_cap=None if analyst_cap is None else budget_to_message(analyst_cap),
            request_id=request_id or fresh_request_id(),
            data_order=data_order,
            analyst_order=analyst_order,
            people=people,
            new_budgets=new_budgets,
            person=person,
            persons=PERSONS.write(persons, "persons"),
            accepted=[DANGERS.write(each, "accepted") for each in accepted],
        )
        with followed(self._service, request.request_id, on_progress):
            answer = self._connection.call(self._service.RegisterDataset, request, LONG_SECONDS)
        return dataset_from_message(answer.dataset)

    def update_dataset(
        self,
        name: str,
        source: str = "",
        schema: Schema | None = None,
        request_id: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> Dataset:
        """Registers another version of a dataset, which its account pays for. New rounds are about the newest one.

        Args:
            name: the dataset's name.
            source: the table, relative to the server's data directory; empty: where the newest version's lies.
            schema: the table's attributes; None: the newest version's schema.
            request_id: makes the call safe to repeat; None: a fresh one.
            on_progress: called, from another thread, with how far the server is.

        Returns:
            The new version.

        Raises:
            InvalidArgument: a record does not fit the schema, nothing has changed, or the table has other people.
            WrongState: the dataset is retired or deleted.
        """
        request = operator_pb2.UpdateDatasetRequest(
            name=name,
            source=source,
            schema=None if schema is None else workloads.schema_to_message(schema),
            request_id=request_id or fresh_request_id(),
        )
        with followed(self._service, request.request_id, on_progress):
            answer = self._connection.call(self._service.UpdateDataset, request, LONG_SECONDS)
        return dataset_from_message(answer.dataset)

    def retire_dataset(self, name: str, request_id: str | None = None) -> Dataset:
        """Retires a dataset for good: no new rounds or versions. Open rounds continue; results stay readable.

        Args:
            name: of the dataset.
            request_id: makes the call safe to repeat; None: a fresh one.

        Raises:
            NotFound: there is no such dataset.
            WrongState: it is retired or deleted already.
        """
        request = operator_pb2.RetireDatasetRequest(name=name, request_id=request_id or fresh_request_id())
        return dataset_from_message(self._connection.call(self._service.RetireDataset, request).dataset)

    def delete_dataset(self, name: str, request_id: str | None = None) -> Dataset:
        """Erases, for good, the results, measurements and seeds of a dataset's rounds. What was spent stays.

        Args:
            name: of the dataset.
            request_id: makes the call safe to repeat; None: a fresh one.

        Raises:
            WrongState: a round on it has not ended, or its results are not open yet.
        """
        request = operator_pb2.DeleteDatasetRequest(name=name, request_id=request_id or fresh_request_id())
        return dataset_from_message(self._connection.call(self._service.DeleteDataset, request).dataset)

    def datasets(self) -> Iterator[DatasetStanding]:
        """Yields all datasets, each with the budgets that it shares with others of the same people."""
        for page in self._connection.pages(
            self._service.ListDatasets, lambda token: operator_pb2.ListDatasetsRequest(page_token=token)
        ):
            yield from map(standing_from_message, page.datasets)

    def dataset_history(self, name: str) -> DatasetHistory:
        """Returns a dataset with all of its versions. Raises `NotFound`."""
        request = operator_pb2.GetDatasetHistoryRequest(name=name)
        return history_from_message(self._connection.call(self._service.GetDatasetHistory, request))

    def dataset_charges(self, name: str) -> Iterator[DatasetCharge]:
        """Yields what each round on a dataset's account counts on it, the newest first. Raises `NotFound`."""
        for page in self._connection.pages(
            self._service.ListDatasetCharges,
            lambda token: operator_pb2.ListDatasetChargesRequest(dataset=name, page_token=token),
        ):
            yield from map(charge_from_message, page.charges)

    def accounts(self, dataset: str) -> Iterator[Account]:
        """Yields the budget accounts of a dataset."""
        for page in self._connection.pages(
            self._service.ListAccounts,
            lambda token: operator_pb2.ListAccountsRequest(dataset=dataset, page_token=token),
        ):
            yield from map(account_from_message, page.accounts)

    def account_history(self, account: str) -> Iterator[JournalEntry]:
        """Yields the journal's entries of one account, from its opening. Raises `NotFound`."""
        for page in self._connection.pages(
            self._service.ListAccountHistory,
            lambda token: operator_pb2.ListAccountHistoryRequest(account=account, page_token=token),
        ):
            yield from map(journal_entry_from_message, page.entries)

    def set_cap(
        self, account: str, cap: Budget, request_id: str | None = None, accepted: tuple[Danger, ...] = ()
    ) -> Account:
        """Sets another cap of an account, which is journaled.

        Args:
            account: the account's name.
            cap: the new cap.
            request_id: makes the call safe to repeat; None: a fresh one.
            accepted: the dangers of the cap that the operator knows and wants, as for a new dataset's.

        Raises:
            InvalidArgument: the cap is below what is spent and reserved, or has a danger that is not accepted.
            WrongState: rounds that are open would have no room left; aborting them makes room.
        """
        request = operator_pb2.SetCapRequest(
            account=account,
            cap=budget_to_message(cap),
            request_id=request_id or fresh_request_id(),
            accepted=[DANGERS.write(each, "accepted") for each in accepted],
        )
        return account_from_message(self._connection.call(self._service.SetCap, request).account)
