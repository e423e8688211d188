"""Reads operators' requests that register datasets and their versions, and does what they ask."""

from __future__ import annotations

from equipoise.model.identities import Caller
from equipoise.v1 import operator_pb2
from equipoise.wire import workloads
from equipoise.wire.accounts import budget_from_message
from equipoise.wire.persons import PERSONS
from equipoise.wire.terms import dangers_from_message
from equipoise_server.datasets.progress import OnRead
from equipoise_server.rounds.dataset_versions import update_dataset
from equipoise_server.rounds.datasets import Datasets
from equipoise_server.rounds.new_datasets import AccountingMethod
from equipoise_server.rounds.records import DatasetRecord


def registered(
    datasets: Datasets, request: operator_pb2.RegisterDatasetRequest, caller: Caller, progress: OnRead
) -> DatasetRecord:
    """Return the dataset that `request` has registered."""
    return datasets.register(
        request.name,
        request.source,
        workloads.schema_from_message(request.schema),
        budget_from_message(request.data_cap, "data_cap") if request.HasField("data_cap") else None,
        budget_from_message(request.analyst_cap, "analyst_cap") if request.HasField("analyst_cap") else None,
        request.request_id,
        caller.name,
        AccountingMethod(request.data_order, request.analyst_order),
        people=request.people,
        new_budgets=request.new_budgets,
        person=request.person,
        persons=PERSONS.read(request.persons, "persons"),
        accepted=dangers_from_message(request.accepted, "accepted"),
        progress=progress,
    )


def updated(
    datasets: Datasets, request: operator_pb2.UpdateDatasetRequest, caller: Caller, progress: OnRead
) -> DatasetRecord:
    """Return the dataset as of the version that `request` has registered."""
    schema = workloads.schema_from_message(request.schema) if request.HasField("schema") else None
    return update_dataset(datasets, request.name, request.source, schema, request.request_id, caller.name, progress)
