"""A watch sends changes only, ends with the last one, and does not outlive the server."""

from __future__ import annotations

import asyncio

import pytest

from equipoise.errors import Unavailable
from equipoise.v1 import types_pb2
from equipoise_server.rpc.services.watch import watch


async def test_changes_only_and_an_end() -> None:
    looks = iter([("a", False), ("a", False), ("b", False), ("b", False), ("c", True)])

    async def look() -> tuple[types_pb2.Round, bool]:
        name, last = next(looks)
        return types_pb2.Round(id=name), last

    seen = [shown.id async for shown in watch(look, asyncio.Event(), poll_seconds=0.001)]
    assert seen == ["a", "b", "c"]


async def test_ends_when_the_server_stops() -> None:
    async def look() -> tuple[types_pb2.Round, bool]:
        return types_pb2.Round(id="a"), False

    stopping = asyncio.Event()
    shown = watch(look, stopping, poll_seconds=60)
    assert (await anext(shown)).id == "a"
    stopping.set()
    with pytest.raises(Unavailable):
        await anext(shown)
