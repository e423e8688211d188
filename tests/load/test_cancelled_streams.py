"""Streams that are cancelled, at any moment, leave nothing behind: no task, no descriptor, no memory."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

from integration.server_process import ServerProcess, eventually
from load.loaded_server import CALLS_AT_ONCE, Monitor, opened, released, serving, uploaded

from equipoise.v1 import analyst_pb2, analyst_pb2_grpc, operator_pb2_grpc

# What nobody may ask of a server at work: how many tasks it has.
SCRIPT = """
import asyncio, pathlib, signal, sys
from equipoise_server.app import serve

async def main():
    def tell():
        print(len(asyncio.all_tasks()), flush=True)

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, tell)
    seed = bytes.fromhex(sys.argv[2])
    await serve(pathlib.Path(sys.argv[1]), seeds=lambda: seed, ready=lambda port: print(port, flush=True))

if __name__ == "__main__":
    asyncio.run(main())
"""
SETTINGS = (
    f"calls_per_caller = {2 * CALLS_AT_ONCE}",
    "streams_per_second = 1000000",
)
MEMORY, DESCRIPTORS = "process_resident_memory_bytes", "process_open_fds"
SPARE_BYTES = 20_000_000  # what an allocator may keep for later


async def tasks(server: ServerProcess) -> int:
    """How many tasks the server's event loop has now."""
    assert server.process.stdout is not None
    server.process.send_signal(signal.SIGUSR1)
    return int(await asyncio.to_thread(server.process.stdout.readline))


async def cancel(stub: analyst_pb2_grpc.AnalystServiceStub, round_id: str, number: int) -> None:
    """Opens a stream and cancels it: at once, after a message, or while the next is on its way."""
    call: Any
    if number % 2:
        call = stub.WatchAnalystRound(analyst_pb2.WatchAnalystRoundRequest(round_id=round_id))
    else:
        call = stub.StreamResults(analyst_pb2.StreamResultsRequest(round_id=round_id))
    if number % 3:
        await call.read()
    if number % 3 == 2:
        await asyncio.sleep(0)
    call.cancel()


async def cancel_many(stub: analyst_pb2_grpc.AnalystServiceStub, round_id: str, count: int) -> None:
    """Some dozens at a time."""
    for first in range(0, count, 50):
        await asyncio.gather(*(cancel(stub, round_id, number) for number in range(first, min(first + 50, count))))


async def test_cancelled_streams_leave_nothing_behind(tmp_path: Path, cancelled: int) -> None:
    with serving(tmp_path / "state", SETTINGS, SCRIPT) as server:
        monitor = Monitor(server)
        eve_s = await server.admit("eve")
        async with server.channel(server.operator()) as channel:
            operator = operator_pb2_grpc.OperatorServiceStub(channel)
            round_id = await opened(operator, "eve")
            async with server.channel(eve_s) as own:
                await analyst_pb2_grpc.AnalystServiceStub(own).SubmitWorkload(uploaded(round_id, "s"))
            await released(operator, round_id)

        async def settled() -> tuple[int, float, float]:
            """Tasks, descriptors and memory when no call is open."""
            for method in ("StreamResults", "WatchAnalystRound"):
                await monitor.reaches(f'equipoise_open_calls{{method="{method}"}}', 0)
            return await tasks(server), await monitor.value(DESCRIPTORS), await monitor.value(MEMORY)

        async with server.channel(eve_s) as channel:
            stub = analyst_pb2_grpc.AnalystServiceStub(channel)
            async for _ in stub.WatchAnalystRound(analyst_pb2.WatchAnalystRoundRequest(round_id=round_id)):
                pass  # until its results can be read
            # What is made once, such as connections to the store and an allocator's arenas, is made now.
            await cancel_many(stub, round_id, cancelled // 3)
            tasks_before, descriptors, memory = await settled()
            await cancel_many(stub, round_id, cancelled)

            async def nothing_is_left() -> bool:
                await asyncio.sleep(0.05)
                now = await settled()
                return now[0] <= tasks_before and now[1] <= descriptors

            await eventually(nothing_is_left, 60)
            grown = await monitor.value(MEMORY) - memory
            print(f"\n{cancelled} cancelled streams: {grown / cancelled:,.0f} bytes each")
            assert grown < SPARE_BYTES
            # And the server is well.
            whole = stub.StreamResults(analyst_pb2.StreamResultsRequest(round_id=round_id))
            assert len([response async for response in whole]) == 16
