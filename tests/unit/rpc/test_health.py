"""Health follows the store and the server's end, by the standard protocol."""

from __future__ import annotations

import asyncio

import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from harness.waiting import PATIENCE

from equipoise.errors import InvalidArgument, Unavailable
from equipoise_server.rpc import health
from equipoise_server.rpc.health import health_served

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def test_the_services_follow_the_store_and_everything_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "CHECK_SECONDS", 0.01)
    stopping, broken = asyncio.Event(), False

    def look() -> None:
        if broken:
            raise Unavailable("no store")

    async with (
        health_served("127.0.0.1:0", ["x.Y"], look, stopping) as port,
        aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        stub = health_pb2_grpc.HealthStub(channel)

        async def until(service: str, status: int) -> None:
            async with asyncio.timeout(PATIENCE):
                while True:
                    try:
                        answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
                        if answer.status == status:
                            return
                    except aio.AioRpcError:
                        pass  # not looked at yet
                    await asyncio.sleep(0.01)

        await until("x.Y", SERVING)
        await until("", SERVING)
        broken = True
        await until("x.Y", NOT_SERVING)
        await until("", SERVING)
        with pytest.raises(aio.AioRpcError, match="NOT_FOUND"):
            await stub.Check(health_pb2.HealthCheckRequest(service="another"))
        stopping.set()
        await until("", NOT_SERVING)
        with pytest.raises(InvalidArgument, match="health_listen: cannot listen"):
            async with health_served(f"127.0.0.1:{port}", [], look, stopping):
                pass
    async with health_served("", [], look, stopping) as nowhere:
        assert nowhere == 0
