"""Workloads in pieces: order, limit, content."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from equipoise.errors import InvalidArgument, TooLarge
from equipoise.v1 import analyst_pb2
from equipoise_server.rpc.uploads import collect

HEADER = analyst_pb2.SubmitWorkloadRequest(header=analyst_pb2.SubmitHeader(round_id="r", request_id="q"))


def piece(content: bytes) -> analyst_pb2.SubmitWorkloadRequest:
    return analyst_pb2.SubmitWorkloadRequest(piece=content)


async def sent(*requests: analyst_pb2.SubmitWorkloadRequest) -> AsyncIterator[analyst_pb2.SubmitWorkloadRequest]:
    for request in requests:
        yield request


async def test_pieces_are_joined() -> None:
    header, content = await collect(sent(HEADER, piece(b"ab"), piece(b""), piece(b"c")), 3)
    assert (header.round_id, header.request_id, content) == ("r", "q", b"abc")


async def test_a_header_alone_is_an_empty_workload() -> None:
    assert (await collect(sent(HEADER), 3))[1] == b""


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
async def test_any_other_order_is_refused(requests: tuple[analyst_pb2.SubmitWorkloadRequest, ...]) -> None:
    with pytest.raises(InvalidArgument):
        await collect(sent(*requests), 100)


async def test_the_limit_holds_over_all_pieces_and_stops_reading() -> None:
    read = 0

    async def endless() -> AsyncIterator[analyst_pb2.SubmitWorkloadRequest]:
        nonlocal read
        yield HEADER
        while True:
            read += 1
            yield piece(b"0123456789")

    with pytest.raises(TooLarge, match="100 bytes"):
        await collect(endless(), 100)
    assert read == 11
