"""Who calls and who is registered, as messages, and back."""

from __future__ import annotations

from equipoise.model.identities import Caller, Identity, Role
from equipoise.v1 import analyst_pb2, operator_pb2, types_pb2
from equipoise.wire.messages import MessageCodec
from equipoise.wire.scalars import Numbers, from_server, time_from_message, time_to_message

ROLES = Numbers(
    {
        Role.ANALYST: types_pb2.ROLE_ANALYST,
        Role.OPERATOR: types_pb2.ROLE_OPERATOR,
        Role.AUDITOR: types_pb2.ROLE_AUDITOR,
    }
)


CALLER = MessageCodec(analyst_pb2.GetIdentityResponse, Caller, role=ROLES)

caller_to_message, caller_from_message = CALLER.write, from_server(CALLER.read)


def analyst_to_message(identity: Identity) -> operator_pb2.Analyst:
    """Returns the message of an analyst who was admitted."""
    until = identity.certified_until
    return operator_pb2.Analyst(
        name=identity.name,
        create_time=time_to_message(identity.create_time),
        certified_until_time=None if until is None else time_to_message(until),
    )


@from_server
def analyst_from_message(message: operator_pb2.Analyst) -> Identity:
    """Returns an analyst who was admitted. Raises `DataLoss`."""
    return Identity(
        name=message.name,
        role=Role.ANALYST,
        create_time=time_from_message(message.create_time),
        certified_until=(
            time_from_message(message.certified_until_time) if message.HasField("certified_until_time") else None
        ),
    )
