"""Datasets as messages, and back."""

from __future__ import annotations

from equipoise.errors import InvalidArgument
from equipoise.model.datasets import (
    Dataset,
    DatasetCharge,
    DatasetHistory,
    DatasetStanding,
    DatasetState,
    DatasetVersion,
)
from equipoise.v1 import operator_pb2, types_pb2
from equipoise.wire.accounts import ACCOUNT, CHARGE
from equipoise.wire.messages import Converted, MessageCodec
from equipoise.wire.persons import PERSONS
from equipoise.wire.rounds import STATES
from equipoise.wire.scalars import from_server
from equipoise.wire.workloads import schema_from_message, schema_to_message


def _state(said: str) -> DatasetState:
    try:
        return DatasetState(said)
    except ValueError:
        raise InvalidArgument("state", f"must be one of {', '.join(DatasetState)}") from None


# Without where its file lies, which is the custodian's business.
DATASET = MessageCodec(
    types_pb2.Dataset, Dataset, schema=Converted(schema_to_message, schema_from_message), persons=PERSONS
)
_STANDING = MessageCodec(
    operator_pb2.DatasetStanding,
    DatasetStanding,
    dataset=DATASET,
    state=Converted(str, _state),
    data=ACCOUNT,
    analysts=ACCOUNT,
)
_VERSION = MessageCodec(operator_pb2.DatasetVersion, DatasetVersion)
_HISTORY = MessageCodec(
    operator_pb2.GetDatasetHistoryResponse, DatasetHistory, standing=_STANDING, versions=_VERSION
)
_CHARGE = MessageCodec(operator_pb2.DatasetCharge, DatasetCharge, state=STATES, data=CHARGE, analyst=CHARGE)

dataset_to_message, dataset_from_message = DATASET.write, from_server(DATASET.read)
standing_to_message, standing_from_message = _STANDING.write, from_server(_STANDING.read)
history_to_message, history_from_message = _HISTORY.write, from_server(_HISTORY.read)
charge_to_message, charge_from_message = _CHARGE.write, from_server(_CHARGE.read)
