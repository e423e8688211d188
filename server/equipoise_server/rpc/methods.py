"""From a service's descriptor and an object with its methods to what gRPC serves.

A method `GetRound` is answered by `get_round(caller, request)`:

- one request, one response: a plain function, run in a thread;
- one request, a stream: an async generator, of which every message is written before the next is made;
- a stream, one response: an async function that is given an async iterator of requests.

Requests are parsed here, inside all guards, and not by gRPC: so a malformed one is refused like any other error
and only after the caller's role has been checked.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from equipoise.errors import InvalidArgument, NotServed
from equipoise_server.identity.policy import POLICY, Row, check_policy
from equipoise_server.rpc.authentication import current_caller
from equipoise_server.rpc.guards import Context, Handler


def bind(
    services: Mapping[ServiceDescriptor, object], policy: Mapping[str, Row] = POLICY
) -> list[grpc.GenericRpcHandler]:
    """The handlers of some services. Raises `InvalidArgument` unless the policy has a row for each method.

    Raises `AttributeError` where a served method has nothing to answer it.
    """
    check_policy((full_name(method) for service in services for method in service.methods), policy)
    return [
        grpc.method_handlers_generic_handler(
            service.full_name,
            {
                method.name: _handler(method, getattr(implementation, _snake(method.name)))
                if policy[full_name(method)].served
                else _unserved(method)
                for method in service.methods
            },
        )
        for service, implementation in services.items()
    ]


def full_name(method: MethodDescriptor) -> str:
    """The method's name as gRPC and the policy table write it."""
    return f"/{method.containing_service.full_name}/{method.name}"


def _handler(method: MethodDescriptor, answer: Any) -> Handler:
    request_class = GetMessageClass(method.input_type)

    async def unary(raw: bytes, _: Context) -> bytes:
        response = await asyncio.to_thread(answer, current_caller(), _parse(request_class, raw))
        return _serialize(response)

    async def stream(raw: bytes, context: Context) -> None:
        # Written here, not handed to gRPC: what waits for a slow reader waits inside the guards, who may end it.
        async with aclosing(answer(current_caller(), _parse(request_class, raw))) as responses:
            async for response in responses:
                await context.write(_serialize(response))

    async def upload(requests: AsyncIterator[bytes], _: Context) -> bytes:
        parsed = (_parse(request_class, raw) async for raw in requests)
        return _serialize(await answer(current_caller(), parsed))

    if method.client_streaming:
        return _made(grpc.stream_unary_rpc_method_handler, upload)
    if method.server_streaming:
        return _made(grpc.unary_stream_rpc_method_handler, stream)
    return _made(grpc.unary_unary_rpc_method_handler, unary)


def _unserved(method: MethodDescriptor) -> Handler:
    async def answer(_: Any, __: Context) -> None:
        raise NotServed(f"{method.name} is not served by this version")

    # On the wire a unary call is a stream of one message, so one kind stands for all four.
    return _made(grpc.stream_unary_rpc_method_handler, answer)


def _made(make: Any, behaviour: Any) -> Handler:
    handler: Handler = make(behaviour)
    return handler


def _parse(request_class: type[Message], raw: bytes) -> Message:
    try:
        request = request_class.FromString(raw)
    except DecodeError:
        raise InvalidArgument("request", f"is not a {request_class.DESCRIPTOR.name}") from None
    _check_texts(request, "")
    return request


def _check_texts(message: Message, path: str) -> None:
    """No text has a NUL: PostgreSQL cannot hold one, and both stores answer alike."""
    for field, value in message.ListFields():
        if field.type not in (field.TYPE_MESSAGE, field.TYPE_STRING):
            continue
        for each in (value,) if isinstance(value, str | Message) else value:
            if isinstance(each, Message):
                _check_texts(each, f"{path}{field.name}.")
            elif "\0" in each:
                raise InvalidArgument(path + field.name, "must not have NUL characters")


def _serialize(response: Message) -> bytes:
    return response.SerializeToString()


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
