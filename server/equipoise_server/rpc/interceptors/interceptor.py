"""Guards: context managers that every call enters before its request is parsed, and the interceptor that runs them.

    call -> hide errors -> measure -> authenticate -> limit -> authorise -> the method

Limits come before authorisation, because a call that is refused for its role costs the server as much as any other.
The same interceptor serves unary and streaming methods and calls of methods that do not exist, so no call can
avoid the guards.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc
from grpc import aio

from equipoise.errors import NotServed
from equipoise_server.identity.policy import POLICY

Context = aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"  # not subscriptable at run time


UNKNOWN = "unknown"  # instead of the name of a method that is not served, which the caller could choose freely


@dataclass(frozen=True)
class Call:
    """A call as guards see it: the method's full name or `UNKNOWN`, and gRPC's context."""

    method: str
    context: Context


Guard = Callable[[Call], AbstractAsyncContextManager[None]]


class GuardInterceptor(aio.ServerInterceptor):
    """The interceptor that puts one guard around every method of a server."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """Return the method's handler inside the guard; for a method that does not exist, one that refuses."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        return surround(handler or _UNSERVED, self._guard, method if method in POLICY else UNKNOWN)


async def _refuse_unknown(*_: object) -> None:
    raise NotServed("the server does not know this method")


_UNSERVED: Handler = grpc.stream_stream_rpc_method_handler(_refuse_unknown)


def surround(handler: Handler, guard: Guard, method: str) -> Handler:
    """Return a handler of the same kind that runs inside `guard`: a coroutine, also where it writes a stream."""
    # grpc's type stubs describe the synchronous API; the handlers of aio are as the code below expects.
    inner: Any = handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream

    async def behaviour(request: Any, context: Context) -> Any:
        async with guard(Call(method, context)):
            return await inner(request, context)

    make: Any = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }[handler.request_streaming, handler.response_streaming]
    rebuilt: Handler = make(behaviour, handler.request_deserializer, handler.response_serializer)
    return rebuilt
