"""Makes gRPC handlers of a service's descriptor and an object that implements its methods.

A method `GetRound` is answered by `get_round(caller, request)`:

- one request, one response: a plain function, run in a thread;
- one request, a stream: an async generator, whose messages are written as fast as the caller reads them;
- a stream, one response: an async function with an async iterator of requests;
- a stream of each: an async generator with an async iterator of requests, which decides how long it waits.

Requests are parsed here, inside all guards, and not by gRPC. So a malformed request is refused like any other
error, and only after the caller's role has been checked. Requests are parsed in a thread, as parsing may be slow.
Only small messages of a stream are not: handing one to a thread takes longer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import grpc
import structlog
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from equipoise.errors import InvalidArgument, Unavailable
from equipoise.model.identities import Caller
from equipoise_server.identity.policy import POLICY, MethodPolicy, check_policy
from equipoise_server.rpc.interceptors.audit_trail import Entry, recorded
from equipoise_server.rpc.interceptors.authentication import current_caller
from equipoise_server.rpc.interceptors.error_translation import refuse
from equipoise_server.rpc.interceptors.interceptor import Context, Handler
from equipoise_server.rpc.threads import Threads

NOT_READ = "the stream was not read for too long; resume it after what you received"
NOT_BROUGHT = "the rest of the upload did not come in time"
SMALL_BYTES = 4096  # whatever a message of them holds, parsing it takes less than a millisecond

_log = structlog.get_logger("equipoise.rpc")


@dataclass(frozen=True)
class Serving:
    """The threads that answer calls, and how many seconds a stream may wait for its reader or its next request."""

    threads: Threads
    stall_seconds: float


def bind(
    services: Mapping[ServiceDescriptor, object], serving: Serving, policy: Mapping[str, MethodPolicy] = POLICY
) -> list[grpc.GenericRpcHandler]:
    """Return the handlers of some services.

    Args:
        services: The object that implements each service.
        serving: How calls are answered.
        policy: The policy's row of each method, by its full name.

    Raises:
        InvalidArgument: The policy does not have one row for each method.
        AttributeError: An object does not implement a method.
    """
    check_policy((full_name(method) for service in services for method in service.methods), policy)
    return [
        grpc.method_handlers_generic_handler(
            service.full_name,
            {
                method.name: _handler(
                    method, getattr(implementation, _snake(method.name)), policy[full_name(method)], serving
                )
                for method in service.methods
            },
        )
        for service, implementation in services.items()
    ]


def full_name(method: MethodDescriptor) -> str:
    """Return the method's name as gRPC and the policy table write it."""
    return f"/{method.containing_service.full_name}/{method.name}"


def _handler(method: MethodDescriptor, answer: Any, row: MethodPolicy, serving: Serving) -> Handler:
    request_class = GetMessageClass(method.input_type)
    threads = serving.threads.of(row.rate)

    async def unary(raws: AsyncIterator[bytes], _: Context) -> bytes:
        caller = current_caller()
        with recorded(row, caller) as entry:
            raw = await receive_one(raws, serving.stall_seconds)

            def answered() -> bytes:
                request = _parse(request_class, raw)
                entry.note(request)
                response: Message = answer(caller, request)
                entry.note(response)
                return response.SerializeToString()

            return await threads.run(caller.name, answered)

    async def stream(raws: AsyncIterator[bytes], context: Context) -> None:
        caller = current_caller()
        with recorded(row, caller) as entry:
            raw = await receive_one(raws, serving.stall_seconds)
            request = await threads.run(caller.name, _parse, request_class, raw)
            entry.note(request)
            await written(answer(caller, request), caller, context)

    async def conversation(raws: AsyncIterator[bytes], context: Context) -> None:
        caller = current_caller()
        with recorded(row, caller) as entry:
            await written(answer(caller, parsed(raws, caller, entry)), caller, context)

    async def written(responses: AsyncGenerator[Message], caller: Caller, context: Context) -> None:
        async with aclosing(responses):
            async for response in responses:
                if not await _write(context, response.SerializeToString(), serving.stall_seconds):
                    break
            else:
                return
        # Release the stream's buffers before sending the final status. Sending it blocks until the client reads or
        # disconnects, and until then the call still counts against the caller's limit.
        _log.info("stalled", method=method.name, caller=caller.name)
        await refuse(context, Unavailable(NOT_READ))

    async def parsed(raws: AsyncIterator[bytes], caller: Caller, entry: Entry) -> AsyncIterator[Message]:
        async for raw in raws:
            if len(raw) <= SMALL_BYTES:
                request = _parse(request_class, raw)
            else:
                request = await threads.run(caller.name, _parse, request_class, raw)
            entry.note(request)
            yield request

    async def upload(raws: AsyncIterator[bytes], _: Context) -> bytes:
        caller = current_caller()
        with recorded(row, caller) as entry:
            requests = parsed(_receive(raws, serving.stall_seconds), caller, entry)
            response: Message = await answer(caller, requests)
            return response.SerializeToString()

    if method.client_streaming and method.server_streaming:
        return _build_handler(grpc.stream_stream_rpc_method_handler, conversation)
    if method.client_streaming:
        return _build_handler(grpc.stream_unary_rpc_method_handler, upload)
    # One request and a stream of requests look alike on the wire. gRPC itself would read a single request before
    # any guard runs, wait for the request for ever, and never answer a call that ends without it.
    if method.server_streaming:
        return _build_handler(grpc.stream_stream_rpc_method_handler, stream)
    return _build_handler(grpc.stream_unary_rpc_method_handler, unary)


def _build_handler(make: Any, behaviour: Any) -> Handler:
    handler: Handler = make(behaviour)
    return handler


async def _write(context: Context, message: bytes, seconds: float) -> bool:
    """Write a message, and return whether the reader made room for it in time."""
    try:
        async with asyncio.timeout(seconds):
            await context.write(message)
    except TimeoutError:
        return False
    return True


async def _receive(messages: AsyncIterator[bytes], seconds: float) -> AsyncGenerator[bytes]:
    """Yield the messages. Raises `Unavailable` where one does not arrive in time."""
    received = aiter(messages)
    while True:
        try:
            async with asyncio.timeout(seconds):
                message = await anext(received, None)
        except TimeoutError:
            raise Unavailable(NOT_BROUGHT) from None
        if message is None:
            return
        yield message


async def receive_one(messages: AsyncIterator[bytes], seconds: float) -> bytes:
    """Return the one message of a request.

    Args:
        messages: All that arrive.
        seconds: How long one may take.

    Raises:
        InvalidArgument: There is none.
        Unavailable: It is late.
    """
    async with aclosing(_receive(messages, seconds)) as received:
        message = await anext(received, None)
    if message is None:
        raise InvalidArgument("request", "is missing: the call ended without a message")
    return message


def _parse(request_class: type[Message], raw: bytes) -> Message:
    try:
        request = request_class.FromString(raw)
    except DecodeError:
        raise InvalidArgument("request", f"is not a {request_class.DESCRIPTOR.name}") from None
    _check_texts(request, "")
    return request


def _check_texts(message: Message, path: str) -> None:
    """Refuse NUL characters in texts: PostgreSQL cannot store them, and both stores must behave alike."""
    for field, value in message.ListFields():
        if field.type not in (field.TYPE_MESSAGE, field.TYPE_STRING):
            continue
        for each in (value,) if isinstance(value, str | Message) else value:
            if isinstance(each, Message):
                _check_texts(each, f"{path}{field.name}.")
            elif "\0" in each:
                raise InvalidArgument(path + field.name, "must not have NUL characters")


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
