"""A watch sends changes only, ends with the last one, and does not outlive the server."""

from __future__ import annotations

import asyncio

import pytest

from equipoise.errors import Unavailable
from equipoise.model.rounds import Progress
from equipoise.v1 import types_pb2
from equipoise_server.rpc.services import watch as watching
from equipoise_server.rpc.services.watch import progress_of, watch


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


async def test_a_request_is_shown_from_its_beginning_to_its_end() -> None:
    told = [None, told_of(0), told_of(40), told_of(40), None]
    found = iter(told)
    look = progress_of(lambda: next(found))
    shown = [(each.phase, each.done) async for each in watch(look, asyncio.Event(), poll_seconds=0.001)]
    assert shown == [("", 0), ("reading", 0), ("reading", 40)]


async def test_a_request_that_never_comes_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "APPEAR_SECONDS", 0.01)
    shown = [each async for each in watch(progress_of(lambda: None), asyncio.Event(), poll_seconds=0.001)]
    assert shown == [types_pb2.Progress()]


def told_of(done: int) -> Progress:
    return Progress("reading", done, 100, 0.0, complete=False, peak_memory_bytes=0)
