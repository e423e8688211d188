"""Guards surround every kind of method, in order, and a failing one keeps the method from running."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest

from equipoise.errors import NotServed, PermissionDenied
from equipoise_server.identity.policy import POLICY
from equipoise_server.rpc.interceptors.interceptor import (
    UNKNOWN,
    Call,
    Context,
    Guard,
    GuardInterceptor,
    Handler,
    surround,
)


@dataclass
class FakeContext:
    """Keeps what is written to a stream."""

    written: list[str] = field(default_factory=list)

    async def write(self, message: str) -> None:
        self.written.append(message)


def recording(log: list[str], name: str) -> Guard:
    @asynccontextmanager
    async def guard(call: Call) -> AsyncIterator[None]:
        log.append(f"{name} in {call.method}")
        try:
            yield
        finally:
            log.append(f"{name} out")

    return guard


def handlers(log: list[str]) -> dict[str, Handler]:
    async def single(request: str, _: Context) -> str:
        log.append(request)
        return request

    async def stream(request: str, context: Context) -> None:
        for part in ("1", "2"):
            log.append(part)
            await context.write(request + part)

    make: Any = grpc
    return {
        "unary_unary": make.unary_unary_rpc_method_handler(single),
        "stream_unary": make.stream_unary_rpc_method_handler(single),
        "unary_stream": make.unary_stream_rpc_method_handler(stream),
        "stream_stream": make.stream_stream_rpc_method_handler(stream),
    }


@pytest.mark.parametrize("kind", ["unary_unary", "stream_unary", "unary_stream", "stream_stream"])
async def test_guards_are_entered_in_order_and_left_at_the_end(kind: str) -> None:
    log: list[str] = []
    handler = handlers(log)[kind]
    for name in ("inner", "outer"):
        handler = surround(handler, recording(log, name), "/x/Y")
    behaviour = getattr(handler, kind)
    assert handler.request_streaming is kind.startswith("stream")
    before = ["outer in /x/Y", "inner in /x/Y"]
    context = FakeContext()
    answer = await behaviour("q", cast(Context, context))
    if kind.endswith("unary"):
        assert answer == "q"
        assert log == [*before, "q", "inner out", "outer out"]
    else:
        assert context.written == ["q1", "q2"]
        assert log == [*before, "1", "2", "inner out", "outer out"]


async def test_a_refusing_guard_keeps_the_method_from_running() -> None:
    log: list[str] = []

    @asynccontextmanager
    async def refusing(_: Call) -> AsyncIterator[None]:
        if not log:
            raise PermissionDenied("no")
        yield

    for kind, handler in handlers(log).items():
        with pytest.raises(PermissionDenied):
            await getattr(surround(handler, refusing, "/x/Y"), kind)("q", cast(Context, FakeContext()))
    assert log == []


async def test_a_call_of_a_method_that_does_not_exist_enters_every_guard_under_no_name_of_its_own() -> None:
    log: list[str] = []
    details: Any = SimpleNamespace(method="/equipoise.v1.AnalystService/Secret")

    async def nothing(_: grpc.HandlerCallDetails) -> None:
        return None

    async def inner(asked: grpc.HandlerCallDetails) -> Handler:
        return await GuardInterceptor(recording(log, "inner")).intercept_service(nothing, asked)

    handler: Any = await GuardInterceptor(recording(log, "outer")).intercept_service(inner, details)
    with pytest.raises(NotServed):
        await handler.stream_stream("q", cast(Context, FakeContext()))
    assert log == [f"outer in {UNKNOWN}", f"inner in {UNKNOWN}", "inner out", "outer out"]
    assert UNKNOWN not in POLICY
