"""One analyst opens streams and reads none of them; the others are answered as if it were not there."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from grpc import aio
from integration.server_process import Refusal, eventually, refusal_of
from load.loaded_server import (
    CALLS_AT_ONCE,
    Monitor,
    narrow_channel,
    opened,
    released,
    serving,
    uploaded,
)

from equipoise.v1 import analyst_pb2, analyst_pb2_grpc, operator_pb2_grpc
from equipoise.wire import chunk_from_bytes

STALL_SECONDS = 3
CALLS = 300  # so that the 99th percentile has three of them beyond it
BYTES_A_STREAM = 400_000  # several times a page of results, which a stream holds until it is cut off
OPEN = 'equipoise_open_calls{method="StreamResults"}'
REFUSED = 'equipoise_calls_total{method="StreamResults",status="RESOURCE_EXHAUSTED"}'


async def percentile(stub: analyst_pb2_grpc.AnalystServiceStub, round_id: str) -> float:
    """The 99th percentile of how long looking at the round takes, in seconds."""
    taken = []
    for _ in range(CALLS):
        begin = time.monotonic()
        await stub.GetAnalystRound(analyst_pb2.GetAnalystRoundRequest(round_id=round_id), timeout=60)
        taken.append(time.monotonic() - begin)
    return sorted(taken)[round(0.99 * CALLS) - 1]


async def read_on(stream: Any, received: int) -> tuple[int, Refusal]:
    """How many messages there are with those that were received, and what the stream ended with."""
    try:
        while await stream.read() is not aio.EOF:
            received += 1
    except aio.AioRpcError as error:
        return received, Refusal.of(error)
    raise AssertionError("the stream was not cut off")


async def test_unread_streams_slow_nobody_else_are_cut_off_and_can_be_resumed(tmp_path: Path, unread: int) -> None:
    # Far more than a server allows by default, so that the streams are really there.
    connections = -(-unread // CALLS_AT_ONCE)
    settings = [
        f"calls_per_caller = {unread}",
        f"streams_per_second = {unread}",
        f"connections_per_caller = {connections + 1}",
        f"stall_seconds = {STALL_SECONDS}",
        "reads_per_second = 100000",
    ]
    with serving(tmp_path / "state", settings) as server:
        monitor = Monitor(server)
        bob_s, eve_s = await server.admit("bob"), await server.admit("eve")
        async with AsyncExitStack() as stack:

            async def connect(channel: aio.Channel) -> aio.Channel:
                return await stack.enter_async_context(channel)

            operator = operator_pb2_grpc.OperatorServiceStub(await connect(server.channel(server.operator())))
            bob = analyst_pb2_grpc.AnalystServiceStub(await connect(server.channel(bob_s)))
            eves = [
                analyst_pb2_grpc.AnalystServiceStub(await connect(narrow_channel(server, eve_s)))
                for _ in range(connections)
            ]
            round_id = await opened(operator, "bob", "eve")
            await eves[0].SubmitWorkload(uploaded(round_id, "s"))
            await released(operator, round_id)
            async for _ in bob.WatchAnalystRound(analyst_pb2.WatchAnalystRoundRequest(round_id=round_id)):
                pass  # until its results can be read
            request = analyst_pb2.StreamResultsRequest(round_id=round_id)

            idle = await percentile(bob, round_id)
            memory = await monitor.value("process_resident_memory_bytes")
            streams = [eves[i // CALLS_AT_ONCE].StreamResults(request) for i in range(unread)]
            for stream in streams:
                assert (await stream.read()) is not aio.EOF
            beside = await percentile(bob, round_id)
            grown = await monitor.value("process_resident_memory_bytes") - memory
            print(
                f"\nbob's calls, 99th percentile: {1000 * idle:.1f} ms alone, {1000 * beside:.1f} ms beside "
                f"{unread} unread streams, which hold {grown / unread / 1000:,.0f} kB each"
            )
            # A machine that is slow without them may be slow beside them.
            assert beside < max(1.0, 3 * idle)
            assert grown < BYTES_A_STREAM * unread
            # They are open calls until the reader knows, so a caller's limit is one on all that it left unread.
            assert await monitor.value(OPEN) == unread
            spare = analyst_pb2_grpc.AnalystServiceStub(await connect(server.channel(eve_s)))
            another = await refusal_of(spare.StreamResults(request))
            assert (another.status, another.reason) == ("RESOURCE_EXHAUSTED", "RATE")
            assert await monitor.value(REFUSED) == 1

            async def all_are_cut_off() -> bool:
                await asyncio.sleep(0.1)
                return server.log().count('"stalled"') == unread

            await eventually(all_are_cut_off, 120)
            received, end = await read_on(streams[0], 1)
            assert (end.status, end.reason, "resume" in end.message) == ("UNAVAILABLE", "UNAVAILABLE", True)
            resumed = spare.StreamResults(
                analyst_pb2.StreamResultsRequest(round_id=round_id, after_sequence=received)
            )
            sequences = [chunk_from_bytes(response.chunk).sequence async for response in resumed]
            assert sequences == list(range(received + 1, 17))
            for stream in streams:
                stream.cancel()
            await monitor.reaches(OPEN, 0)
