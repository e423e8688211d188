"""Connections without a certificate, as many as a server takes with its default limits."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import grpc
import pytest
from grpc import aio
from harness.loaded_server import serving
from harness.server_process import Credentials, ServerProcess

from equipoise.v1 import analyst_pb2, analyst_pb2_grpc
from equipoise_server.config import Config

CONNECTIONS = Config.model_fields["connections"].default
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
