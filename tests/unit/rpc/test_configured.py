"""What the configuration limits is limited by gRPC itself, before a call of ours begins."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc import aio
from harness.waiting import PATIENCE

from equipoise_server.config import Config
from equipoise_server.config_file import make_config
from equipoise_server.identity.policy import POLICY, Rate
from equipoise_server.rpc.configured import call_rates, options

CONFIG = make_config(deployment="here", connections=2, metadata_limit_bytes=4096, message_limit_bytes=2**16)
METHOD = "/x.Y/Z"


async def echo(request: bytes, _: Any) -> bytes:
    return request


@asynccontextmanager
async def served(config: Config = CONFIG) -> AsyncIterator[int]:
    """A server with the configured options, on a port without TLS."""
    server = aio.server(options=options(config))
    make: Any = grpc.unary_unary_rpc_method_handler
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("x.Y", {"Z": make(echo)}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


def connection(port: int) -> aio.Channel:
    return aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)])


def blocking(port: int) -> grpc.Channel:
    return grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)])


async def status(channel: aio.Channel, request: bytes, **arguments: Any) -> str:
    call: Any = channel.unary_unary(METHOD)
    try:
        assert await call(request, timeout=PATIENCE, **arguments) == request
    except aio.AioRpcError as error:
        return str(error.code().name)
    return "OK"


@pytest.mark.slow
async def test_calls_that_come_while_thousands_wait_are_all_answered() -> None:
    """gRPC drops calls at random where more than a thousand wait, and all where three thousand do."""
    config = make_config(deployment="here", connections=4, streams_per_connection=2000)
    async with served(config) as port:
        with blocking(port) as hers, blocking(port) as his:
            calls: list[Any] = [channel.unary_unary(METHOD) for channel in (hers, his)]
            # The server looks at none of them, as this thread is its own. They arrive all the same.
            waiting = [call.future(b"x", timeout=PATIENCE) for call in calls for _ in range(1900)]
            time.sleep(2)
            assert await asyncio.to_thread(lambda: {call.result() for call in waiting}) == {b"x"}


@pytest.mark.slow
async def test_large_messages_large_metadata_and_compressed_messages_are_refused() -> None:
    async with served() as port, connection(port) as channel:
        for request, arguments, expected in (
            (b"x" * 2**15, {}, "OK"),
            (b"x" * 2**17, {}, "RESOURCE_EXHAUSTED"),
            (b"x", {"metadata": (("k", "v" * 2**13),)}, "RESOURCE_EXHAUSTED"),
            # A thousandth of what it would become.
            (b"x" * 2**15, {"compression": grpc.Compression.Gzip}, "UNIMPLEMENTED"),
        ):
            assert await status(channel, request, **arguments) == expected
        assert await status(channel, b"x") == "OK"


@pytest.mark.slow
async def test_connections_are_limited_and_free_again_when_they_end() -> None:
    async with served() as port, AsyncExitStack() as stack:
        channels = [await stack.enter_async_context(connection(port)) for _ in range(3)]
        assert [await status(channel, b"x") for channel in channels] == ["OK", "OK", "UNAVAILABLE"]
        await channels[0].close()
        assert await status(channels[2], b"x", wait_for_ready=True) == "OK"


async def test_a_port_is_not_shared_with_another_server() -> None:
    async with served() as port:
        second = aio.server(options=options(CONFIG))
        with pytest.raises(RuntimeError):
            second.add_insecure_port(f"127.0.0.1:{port}")
        await second.stop(None)


def test_every_kind_of_call_has_a_rate() -> None:
    rates = call_rates(CONFIG)
    for rate in Rate:
        rates.take("ann", next(method for method, row in POLICY.items() if row.rate is rate))
