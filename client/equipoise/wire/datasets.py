"""Datasets as messages, and back."""

from __future__ import annotations

from equipoise.model.datasets import Dataset
from equipoise.v1 import types_pb2
from equipoise.wire.messages import Converted, MessageCodec
from equipoise.wire.persons import PERSONS
from equipoise.wire.scalars import from_server
from equipoise.wire.workloads import schema_from_message, schema_to_message

# Without where its file lies, which is the custodian's business.
DATASET = MessageCodec(
    types_pb2.Dataset, Dataset, schema=Converted(schema_to_message, schema_from_message), persons=PERSONS
)

dataset_to_message, dataset_from_message = DATASET.write, from_server(DATASET.read)
