"""The health service: reports on a separate address, by the standard protocol grpc.health.v1, if the server works.

The empty name stands for the process and is SERVING until the process is told to stop. The services' names are
SERVING as long as the store can be read, too. The health service says nothing about analysts, rounds or numbers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from equipoise.errors import EquipoiseError, InvalidArgument

CHECK_SECONDS = 2
_OPTIONS = [
    ("grpc.so_reuseport", 0),
    ("grpc.max_concurrent_streams", 16),
    ("grpc.max_receive_message_length", 4096),
]
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@asynccontextmanager
async def health_served(
    listen: str, services: Sequence[str], look: Callable[[], None], stopping: asyncio.Event
) -> AsyncIterator[int]:
    """Serves health checks while the context is open, and yields the port.

    Args:
        listen: HOST:PORT; where it is empty, nothing is served and the port is 0.
        services: The full names of the services.
        look: Is called in a thread every two seconds; raises `EquipoiseError` while the store cannot be read.
        stopping: Is set when the server is told to stop.

    Raises:
        InvalidArgument: The address cannot be used.
    """
    if not listen:
        yield 0
        return
    server = aio.server(options=_OPTIONS)
    try:
        port = server.add_insecure_port(listen)
    except RuntimeError:
        raise InvalidArgument("health_listen", f"cannot listen on {listen}") from None
    servicer = health_aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    await server.start()
    watching = asyncio.create_task(_keep(servicer, services, look, stopping))
    try:
        yield port
    finally:
        watching.cancel()
        await server.stop(None)


async def _keep(
    servicer: health_aio.HealthServicer, services: Sequence[str], look: Callable[[], None], stopping: asyncio.Event
) -> None:
    while not stopping.is_set():
        try:
            await asyncio.to_thread(look)
            status = _SERVING
        except EquipoiseError:
            status = _NOT_SERVING
        for name in services:
            await servicer.set(name, status)
        try:
            await asyncio.wait_for(stopping.wait(), CHECK_SECONDS)
        except TimeoutError:
            continue
    await servicer.enter_graceful_shutdown()
