"""Schemas and datasets as messages, and back."""

from __future__ import annotations

from equipoise.model.datasets import Dataset
from equipoise.v1 import types_pb2
from equipoise.wire.scalars import from_server, time_from_message, time_to_message
from equipoise.wire.workloads import schema_from_message, schema_to_message


def dataset_to_message(dataset: Dataset) -> types_pb2.Dataset:
    """The message of a dataset's public part: where its file lies is the custodian's business."""
    return types_pb2.Dataset(
        name=dataset.name,
        schema=schema_to_message(dataset.schema),
        records=dataset.records,
        create_time=time_to_message(dataset.create_time),
        retire_time=None if dataset.retire_time is None else time_to_message(dataset.retire_time),
    )


@from_server
def dataset_from_message(message: types_pb2.Dataset) -> Dataset:
    """A registered table. Raises `DataLoss`."""
    return Dataset(
        name=message.name,
        schema=schema_from_message(message.schema),
        records=message.records,
        create_time=time_from_message(message.create_time),
        retire_time=time_from_message(message.retire_time) if message.HasField("retire_time") else None,
    )
