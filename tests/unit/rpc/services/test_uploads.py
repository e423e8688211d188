"""Workloads in pieces: order, limits, content."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Protocol

import pytest
from harness.waiting import PATIENCE

from equipoise.errors import InvalidArgument, TooFast, TooLarge
from equipoise.v1 import analyst_pb2
from equipoise_server.rpc.services.uploads import Uploads
from equipoise_server.rpc.threads import SharedThreads


def piece(content: bytes) -> analyst_pb2.SubmitWorkloadRequest:
    return analyst_pb2.SubmitWorkloadRequest(piece=content)


async def sent(*requests: analyst_pb2.SubmitWorkloadRequest) -> AsyncIterator[analyst_pb2.SubmitWorkloadRequest]:
    for request in requests:
        yield request


def announced(workload_bytes: int) -> analyst_pb2.SubmitWorkloadRequest:
    header = analyst_pb2.SubmitHeader(round_id="r", request_id="q", workload_bytes=workload_bytes)
    return analyst_pb2.SubmitWorkloadRequest(header=header)


def whole(workload: bytes) -> AsyncIterator[analyst_pb2.SubmitWorkloadRequest]:
    return sent(announced(len(workload)), piece(workload))


HEADER = announced(0)


class Made(Protocol):
    """Uploads with these limits."""

    def __call__(self, workload_bytes: int = 100, total_bytes: int = 10**6, identities: int = 3) -> Uploads: ...


@pytest.fixture
def threads() -> Iterator[SharedThreads]:
    made = SharedThreads(4, "uploads")
    yield made
    made.close()


@pytest.fixture
def uploads(threads: SharedThreads) -> Made:
    def made(workload_bytes: int = 100, total_bytes: int = 10**6, identities: int = 3) -> Uploads:
        return Uploads(workload_bytes, total_bytes, lambda: identities, threads)

    return made


async def test_pieces_are_joined(uploads: Made) -> None:
    requests = sent(announced(3), piece(b"ab"), piece(b""), piece(b"c"))
    async with uploads(3).collected("ann", requests) as (header, content):
        assert (header.round_id, header.request_id, content) == ("r", "q", b"abc")


async def test_a_header_alone_is_an_empty_workload(uploads: Made) -> None:
    async with uploads().collected("ann", sent(HEADER)) as (_, content):
        assert content == b""


@pytest.mark.parametrize("workload_bytes", [0, 1, 3])
async def test_what_ends_before_or_after_its_announced_end_is_refused(uploads: Made, workload_bytes: int) -> None:
    with pytest.raises(InvalidArgument, match=rf"^header\.workload_bytes: is {workload_bytes}, but 2 came"):
        async with uploads().collected("ann", sent(announced(workload_bytes), piece(b"ab"))):
            pass


@pytest.mark.parametrize(
    "requests",
    [
        (),
        (piece(b"a"),),
        (piece(b"a"), HEADER),
        (HEADER, HEADER),
        (HEADER, piece(b"a"), HEADER),
        (HEADER, analyst_pb2.SubmitWorkloadRequest()),
    ],
)
async def test_any_other_order_is_refused(
    uploads: Made, requests: tuple[analyst_pb2.SubmitWorkloadRequest, ...]
) -> None:
    with pytest.raises(InvalidArgument):
        async with uploads().collected("ann", sent(*requests)):
            pass


@pytest.mark.parametrize(("limits", "named"), [((100, 10**6), "100 bytes"), ((10**6, 300), "your part")])
async def test_the_limit_holds_over_all_pieces_and_stops_reading(
    uploads: Made, limits: tuple[int, int], named: str
) -> None:
    read = 0

    async def endless() -> AsyncIterator[analyst_pb2.SubmitWorkloadRequest]:
        nonlocal read
        yield HEADER
        while True:
            read += 1
            yield piece(b"0123456789")

    with pytest.raises(TooLarge, match=named):
        async with uploads(*limits).collected("ann", endless()):
            pass
    assert read == 11


async def test_the_parts_of_all_callers_fit_the_total_and_nobody_is_in_anothers(uploads: Made) -> None:
    limited = uploads(workload_bytes=60, total_bytes=300, identities=3)
    async with AsyncExitStack() as stack:
        for caller in ("ann", "bob", "eve"):
            for size in (60, 40):
                await stack.enter_async_context(limited.collected(caller, whole(b"x" * size)))
        for caller in ("ann", "bob", "eve"):
            with pytest.raises(TooFast):
                await stack.enter_async_context(limited.collected(caller, whole(b"x")))
    # All is given back, also by those that were refused.
    async with (
        limited.collected("ann", whole(b"x" * 60)),
        limited.collected("ann", sent(HEADER)),
    ):
        pass


async def test_nobody_waits_for_anothers_uploads_to_begin(threads: SharedThreads) -> None:
    asked, free = threading.Semaphore(0), threading.Event()
    others = True

    def identities() -> int:
        if others:
            asked.release()
            free.wait(PATIENCE)
        return 1

    limited = Uploads(100, 1000, identities, threads)

    async def upload(caller: str) -> None:
        async with limited.collected(caller, sent(HEADER)):
            pass

    many = [asyncio.create_task(upload("eve")) for _ in range(100)]
    assert await asyncio.to_thread(asked.acquire, timeout=PATIENCE)
    others = False
    async with asyncio.timeout(PATIENCE):
        await upload("ann")
    assert not any(each.done() for each in many)
    free.set()
    await asyncio.gather(*many)
