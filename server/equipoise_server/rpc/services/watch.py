"""Watching a round: it is looked at again and again, and sent when what would be sent has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from equipoise.errors import Unavailable
from equipoise.v1 import types_pb2

POLL_SECONDS = 0.2

Shown = TypeVar("Shown", types_pb2.Round, types_pb2.RoundDetail)


async def watch(
    look: Callable[[], Awaitable[tuple[Shown, bool]]], stopping: asyncio.Event, poll_seconds: float = POLL_SECONDS
) -> AsyncIterator[Shown]:
    """Yield what `look` shows, whenever it differs from before, until `look` says that it was the last.

    Raises `Unavailable` when the server is told to stop: watchers have no end of
    their own, and would otherwise hold the server back until it cuts them off.
    """
    previous: Shown | None = None
    while True:
        shown, last = await look()
        if shown != previous:
            yield shown
            previous = shown
        if last:
            return
        try:
            await asyncio.wait_for(stopping.wait(), poll_seconds)
        except TimeoutError:
            continue
        raise Unavailable("the server is stopping")
