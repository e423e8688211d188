"""What an analyst sees of its own world as messages, and back."""

from __future__ import annotations

from equipoise.errors import InvalidArgument
from equipoise.model.own_world import GrantRequest, MeasuredTable, OwnDataset, RequestState, SpentStatement
from equipoise.v1 import analyst_pb2, types_pb2
from equipoise.wire.datasets import DATASET
from equipoise.wire.messages import Converted, MessageCodec
from equipoise.wire.scalars import from_server
from equipoise.wire.statements import sent_from_bytes


def _state(said: str) -> RequestState:
    try:
        return RequestState(said)
    except ValueError:
        raise InvalidArgument("state", f"must be one of {', '.join(RequestState)}") from None


_MEASURED = MessageCodec(analyst_pb2.MeasuredTable, MeasuredTable)
_OWN_DATASET = MessageCodec(analyst_pb2.OwnDataset, OwnDataset, dataset=DATASET, measured=_MEASURED)
_GRANT_REQUEST = MessageCodec(types_pb2.GrantRequest, GrantRequest, state=Converted(str, _state))


def _spent(sent: analyst_pb2.SpentStatement) -> SpentStatement:
    asked = sent_from_bytes(sent.statement)
    return SpentStatement(sent.sequence, asked.statement, asked.rho, sent.cost)


own_dataset_to_message, own_dataset_from_message = _OWN_DATASET.write, from_server(_OWN_DATASET.read)
grant_request_to_message, grant_request_from_message = _GRANT_REQUEST.write, from_server(_GRANT_REQUEST.read)
spent_statement_from_message = from_server(_spent)
