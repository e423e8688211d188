"""Connections without a certificate, and calls that bring nothing, as many as one likes."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from harness.loaded_server import CALLS_AT_ONCE, serving
from harness.server_process import Credentials, ServerProcess, refusal_of

from equipoise.v1 import analyst_pb2, analyst_pb2_grpc
from equipoise_server.config import Config

CONNECTIONS, CALLS = (Config.model_fields[name].default for name in ("connections", "calls_per_caller"))
HALF_OPEN = 5_000
PATIENCE_SECONDS = 240  # on a busy machine


@pytest.mark.full
async def test_as_many_idle_connections_as_there_may_be_keep_out_no_one_for_long(tmp_path: Path) -> None:
    """None of them has a certificate. Who is connected notices nothing, and who comes anew gets in."""
    assert CONNECTIONS == 1_000
    with serving(tmp_path / "state", ()) as server, ExitStack() as idle:
        ann, bob = await server.admit("ann"), await server.admit("bob")
        async with server.channel(ann) as connected:
            await known(connected)
            silent = [
                idle.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(CONNECTIONS)
            ]
            for _ in range(20):
                await known(connected)
            # Without a restart, and without anybody's help.
            await comes_in(server, bob)
            for each in silent:
                each.settimeout(PATIENCE_SECONDS)
                assert has_ended(each)
            await known(connected)
        await comes_in(server, ann)
        assert "Traceback" not in server.log()


@pytest.mark.nightly
async def test_half_open_calls_end_and_no_other_caller_s_call_is_dropped_beside_them(tmp_path: Path) -> None:
    """Of calls that bring no message and do not end, no more stay open than one caller may have."""
    with serving(tmp_path / "state", ("stall_seconds = 5",)) as server:
        eve, bob = await server.admit("eve"), await server.admit("bob")
        async with AsyncExitStack() as stack:
            channels = [
                await stack.enter_async_context(own_connection(server, eve))
                for _ in range(HALF_OPEN // CALLS_AT_ONCE)
            ]
            his = await stack.enter_async_context(server.channel(bob))
            calls: list[Any] = [
                channel.stream_stream("/equipoise.v1.AnalystService/GetIdentity")(timeout=PATIENCE_SECONDS)
                for channel in channels
                for _ in range(CALLS_AT_ONCE)
            ]
            # They wait in one line with hers.
            await asyncio.gather(*(known(his) for _ in range(CALLS // 2)))
            found: Counter[str] = Counter()
            for call in calls:
                found[(await refusal_of(call)).reason] += 1
            # A connection may refuse calls that come before it is set up.
            assert set(found) <= {"RATE", "UNAVAILABLE", ""}, found
            assert found["RATE"] > HALF_OPEN // 10
            assert 0 < found["UNAVAILABLE"] < HALF_OPEN // 10
        # Nothing of it is left: the same caller is answered, and so is anybody.
        async with own_connection(server, eve) as again:
            await known(again)
        assert "Traceback" not in server.log()


def own_connection(server: ServerProcess, credentials: Credentials) -> aio.Channel:
    """A channel that shares its connection with no other."""
    tls = grpc.ssl_channel_credentials(credentials.authority, credentials.key, credentials.certificate)
    options = [("grpc.use_local_subchannel_pool", 1)]
    return aio.secure_channel(f"127.0.0.1:{server.port}", tls, options=options)


async def known(channel: aio.Channel) -> None:
    """Whoever calls is answered."""
    stub = analyst_pb2_grpc.AnalystServiceStub(channel)
    assert (await stub.GetIdentity(analyst_pb2.GetIdentityRequest(), timeout=PATIENCE_SECONDS)).name


async def comes_in(server: ServerProcess, credentials: Credentials) -> None:
    """A new client gets a connection, as its library tries again."""
    begin, refused = time.monotonic(), True
    while refused:
        assert time.monotonic() - begin < PATIENCE_SECONDS
        async with own_connection(server, credentials) as channel:
            with suppress(aio.AioRpcError):
                await known(channel)
                refused = False


def has_ended(connection: socket.socket) -> bool:
    """Whether the other side ends a connection, orderly or not."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
