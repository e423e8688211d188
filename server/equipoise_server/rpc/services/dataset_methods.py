"""The methods by which operators register tables, and end and list them."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.model.identities import Caller
from equipoise.v1 import operator_pb2
from equipoise.wire.datasets import charge_to_message, dataset_to_message, history_to_message, standing_to_message
from equipoise_server.rounds.dataset_endings import delete_dataset, retire_dataset
from equipoise_server.rounds.services import RoundServices
from equipoise_server.rounds.underway import READING, of_reading
from equipoise_server.rpc.services.dataset_requests import registered, updated


@dataclass(frozen=True)
class DatasetMethods:
    """The part of `OperatorService` that is about tables, bound by `rpc.methods`."""

    rounds: RoundServices

    def register_dataset(
        self, caller: Caller, request: operator_pb2.RegisterDatasetRequest
    ) -> operator_pb2.RegisterDatasetResponse:
        """Registers a table that lies in the data directory and opens its budget accounts."""
        with self.rounds.underway.followed(caller.name, request.request_id, READING) as step:
            record = registered(self.rounds.datasets, request, caller, of_reading(step))
        return operator_pb2.RegisterDatasetResponse(dataset=dataset_to_message(record))

    def update_dataset(
        self, caller: Caller, request: operator_pb2.UpdateDatasetRequest
    ) -> operator_pb2.UpdateDatasetResponse:
        """Registers another version of a dataset."""
        with self.rounds.underway.followed(caller.name, request.request_id, READING) as step:
            record = updated(self.rounds.datasets, request, caller, of_reading(step))
        return operator_pb2.UpdateDatasetResponse(dataset=dataset_to_message(record))

    def retire_dataset(
        self, caller: Caller, request: operator_pb2.RetireDatasetRequest
    ) -> operator_pb2.RetireDatasetResponse:
        """Allows no new rounds on a dataset and no new versions of it."""
        record = retire_dataset(self.rounds.operations, request.name, request.request_id, caller.name)
        return operator_pb2.RetireDatasetResponse(dataset=dataset_to_message(record))

    def delete_dataset(
        self, caller: Caller, request: operator_pb2.DeleteDatasetRequest
    ) -> operator_pb2.DeleteDatasetResponse:
        """Erases what is held of a dataset's table."""
        record = delete_dataset(self.rounds.operations, request.name, request.request_id, caller.name)
        return operator_pb2.DeleteDatasetResponse(dataset=dataset_to_message(record))

    def list_datasets(
        self, _: Caller, request: operator_pb2.ListDatasetsRequest
    ) -> operator_pb2.ListDatasetsResponse:
        """Lists the datasets with their budgets."""
        standings, token = self.rounds.dataset_views.page(request.page_size, request.page_token)
        return operator_pb2.ListDatasetsResponse(
            datasets=[standing_to_message(standing) for standing in standings], next_page_token=token
        )

    def get_dataset_history(
        self, _: Caller, request: operator_pb2.GetDatasetHistoryRequest
    ) -> operator_pb2.GetDatasetHistoryResponse:
        """Shows a dataset with all of its versions."""
        return history_to_message(self.rounds.dataset_views.history(request.name))

    def list_dataset_charges(
        self, _: Caller, request: operator_pb2.ListDatasetChargesRequest
    ) -> operator_pb2.ListDatasetChargesResponse:
        """Lists what each round counts on the account of a dataset, the newest first."""
        views = self.rounds.dataset_views
        found, token = views.charges(request.dataset, request.page_size, request.page_token)
        return operator_pb2.ListDatasetChargesResponse(
            charges=[charge_to_message(charge) for charge in found], next_page_token=token
        )
