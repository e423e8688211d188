"""Streams that nobody reads, and streams that are cancelled: they slow nobody else and leave nothing behind."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from grpc import aio
from harness.loaded_server import CALLS_AT_ONCE, Monitor, narrow_channel, opened, released, serving, uploaded
from harness.server_process import HURRIED, Credentials, Refusal, ServerProcess, refusal_of
from harness.waiting import PATIENCE, eventually

from equipoise.v1 import analyst_pb2, analyst_pb2_grpc, operator_pb2_grpc
from equipoise.wire.results import chunk_from_bytes

STALL_SECONDS = 3
CALLS = 300  # so that the 99th percentile has three of them beyond it
CHUNKS = 16  # in a stream of 16,384 answers
BYTES_A_STREAM = 600_000  # a page of results and a connection's part; a stream lets go of it when it is cut off
OPEN = 'equipoise_open_calls{method="StreamResults"}'
WATCHED = 'equipoise_open_calls{method="WatchAnalystRound"}'
SUBMITTED = 'equipoise_open_calls{method="SubmitWorkload"}'
REFUSED = 'equipoise_calls_total{method="StreamResults",status="RESOURCE_EXHAUSTED"}'
MEMORY, DESCRIPTORS = "process_resident_memory_bytes", "process_open_fds"
CUT_OFF, MAX_SUBMIT_SECONDS = 100, 0.05  # submits, and until the last of them is cut off
SPARE_BYTES = 20_000_000  # what an allocator may keep for later
SPARE_TASKS = 10  # that come and go
SPARE_DESCRIPTORS = 60  # of connections to the store that are made when many read at once, and then stay

# The server, and what nobody may ask of one at work: how many tasks it has.
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


@dataclass(frozen=True)
class Place:
    """A server, a round whose results can be read, and one that is open."""

    server: ServerProcess
    monitor: Monitor
    bob: Credentials
    eve: Credentials
    round_id: str
    open_id: str

    async def tasks(self) -> int:
        """How many tasks the server's event loop has now."""
        assert self.server.process.stdout is not None
        self.server.process.send_signal(signal.SIGUSR1)
        return int(await asyncio.to_thread(self.server.process.stdout.readline))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, unread: int) -> Iterator[Place]:
    # Far more than a server allows by default, so that the streams are really there.
    settings = [
        f"calls_per_caller = {unread}",
        f"connections_per_caller = {connections_for(unread) + 1}",
        f"stall_seconds = {STALL_SECONDS}",
        *HURRIED,
    ]
    with serving(tmp_path_factory.mktemp("streams") / "state", settings, SCRIPT) as server:
        yield asyncio.run(prepared(server))


async def prepared(server: ServerProcess) -> Place:
    """The server with its rounds; eve's results can be read."""
    bob, eve = await server.admit("bob"), await server.admit("eve")
    async with server.channel(server.operator()) as channel, server.channel(eve) as own:
        operator, stub = operator_pb2_grpc.OperatorServiceStub(channel), analyst_pb2_grpc.AnalystServiceStub(own)
        round_id = await opened(operator)
        await stub.SubmitWorkload(uploaded(round_id, "s"))
        await released(operator, round_id)
        async for _ in stub.WatchAnalystRound(analyst_pb2.WatchAnalystRoundRequest(round_id=round_id)):
            pass  # which ends when the results can be read
        return Place(server, Monitor(server), bob, eve, round_id, await opened(operator, "another"))


def connections_for(streams: int) -> int:
    """How many connections so many streams need."""
    return -(-streams // CALLS_AT_ONCE)


async def percentile(stub: analyst_pb2_grpc.AnalystServiceAsyncStub, round_id: str) -> float:
    """The 99th percentile of how long looking at the round takes, in seconds."""
    taken = []
    for _ in range(CALLS):
        begin = time.monotonic()
        await stub.GetAnalystRound(analyst_pb2.GetAnalystRoundRequest(round_id=round_id), timeout=PATIENCE)
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


@pytest.mark.nightly
async def test_unread_streams_slow_nobody_else_are_cut_off_and_can_be_resumed(place: Place, unread: int) -> None:
    monitor, request = place.monitor, analyst_pb2.StreamResultsRequest(round_id=place.round_id)
    async with AsyncExitStack() as stack:

        async def connect(channel: aio.Channel) -> analyst_pb2_grpc.AnalystServiceAsyncStub:
            return analyst_pb2_grpc.AnalystServiceStub(await stack.enter_async_context(channel))

        bob = await connect(place.server.channel(place.bob))
        eves = [await connect(narrow_channel(place.server, place.eve)) for _ in range(connections_for(unread))]
        idle = await percentile(bob, place.round_id)
        memory = await monitor.value(MEMORY)
        streams = [eves[i // CALLS_AT_ONCE].StreamResults(request) for i in range(unread)]
        for stream in streams:
            assert (await stream.read()) is not aio.EOF
        beside = await percentile(bob, place.round_id)
        grown = await monitor.value(MEMORY) - memory
        print(
            f"\nbob's calls, 99th percentile: {1000 * idle:.1f} ms alone, {1000 * beside:.1f} ms beside "
            f"{unread} unread streams, which hold {grown / unread / 1000:,.0f} kB each"
        )
        # A machine that is slow without them may be slow beside them.
        assert beside < max(1.0, 3 * idle)
        assert grown < BYTES_A_STREAM * unread
        # They are open calls until the reader knows, so a caller's limit is one on all that it left unread.
        assert await monitor.value(OPEN) == unread
        spare = await connect(place.server.channel(place.eve))
        another = await refusal_of(spare.StreamResults(request))
        assert (another.status, another.reason) == ("RESOURCE_EXHAUSTED", "RATE")
        assert await monitor.value(REFUSED) == 1

        async def all_are_cut_off() -> bool:
            await asyncio.sleep(0.1)
            return place.server.log().count('"stalled"') == unread

        await eventually(all_are_cut_off, 120)
        received, end = await read_on(streams[0], 1)
        assert (end.status, end.reason, "resume" in end.message) == ("UNAVAILABLE", "UNAVAILABLE", True)
        resumed = spare.StreamResults(
            analyst_pb2.StreamResultsRequest(round_id=place.round_id, after_sequence=received)
        )
        sequences = [chunk_from_bytes(response.chunk).sequence async for response in resumed]
        assert sequences == list(range(received + 1, CHUNKS + 1))
        for stream in streams:
            stream.cancel()
        await monitor.reaches(OPEN, 0)


async def cancel(stub: analyst_pb2_grpc.AnalystServiceAsyncStub, place: Place, number: int) -> None:
    """Opens a stream and cancels it: at once, after a message, or while the next is on its way."""
    call: Any
    if number % 2:
        call = stub.WatchAnalystRound(analyst_pb2.WatchAnalystRoundRequest(round_id=place.open_id))
    else:
        call = stub.StreamResults(analyst_pb2.StreamResultsRequest(round_id=place.round_id))
    if number % 3:
        await call.read()
    if number % 3 == 2:
        await asyncio.sleep(0)
    call.cancel()


def cut_off(stub: Any, place: Place, number: int) -> None:
    """Begins a submit, and hangs up before its last byte."""
    gone = threading.Event()

    def requests() -> Iterator[analyst_pb2.SubmitWorkloadRequest]:
        header, piece = uploaded(place.open_id, f"cut off {number}")
        header.header.workload_bytes += 1
        yield from (header, piece)
        gone.wait()

    call = stub.SubmitWorkload.future(requests())
    time.sleep(MAX_SUBMIT_SECONDS * number / CUT_OFF)
    call.cancel()
    gone.set()


async def test_a_submit_that_is_cut_off_is_none(place: Place) -> None:
    """What was sent until then looks to gRPC's server, now and then, as if it had been all."""
    with place.server.blocking_channel(place.eve) as channel:
        stub = analyst_pb2_grpc.AnalystServiceStub(channel)
        for number in range(CUT_OFF):
            await asyncio.to_thread(cut_off, stub, place, number)
        await place.monitor.reaches(SUBMITTED, 0)
        withdrawal = analyst_pb2.WithdrawWorkloadRequest(round_id=place.open_id, request_id="cut off")
        refused = stub.WithdrawWorkload.future(withdrawal).exception()
        assert refused is not None, "one was accepted"
        assert Refusal.of(refused).reason == "NOT_FOUND"


@pytest.mark.nightly
async def test_cancelled_streams_leave_nothing_behind(place: Place, cancelled: int) -> None:
    monitor = place.monitor

    async def cancel_many(stub: analyst_pb2_grpc.AnalystServiceAsyncStub, count: int) -> None:
        for first in range(0, count, 50):
            await asyncio.gather(*(cancel(stub, place, number) for number in range(first, min(first + 50, count))))
        for metric in (OPEN, WATCHED):
            await monitor.reaches(metric, 0)

    async with place.server.channel(place.eve) as channel:
        stub = analyst_pb2_grpc.AnalystServiceStub(channel)
        await cancel_many(stub, cancelled // 3)
        tasks, descriptors, memory = (
            await place.tasks(),
            await monitor.value(DESCRIPTORS),
            await monitor.value(MEMORY),
        )
        await cancel_many(stub, cancelled)

        async def nothing_is_left() -> bool:
            await asyncio.sleep(0.05)
            few = await monitor.value(DESCRIPTORS) < descriptors + SPARE_DESCRIPTORS
            return few and await place.tasks() < tasks + SPARE_TASKS

        await eventually(nothing_is_left, 60)
        grown = await monitor.value(MEMORY) - memory
        print(f"\n{cancelled} cancelled streams: {grown / cancelled:,.0f} bytes each")
        assert grown < SPARE_BYTES
        # And the server is well.
        whole = stub.StreamResults(analyst_pb2.StreamResultsRequest(round_id=place.round_id))
        assert len([response async for response in whole]) == CHUNKS
