"""Watches a round: polls the round, and sends its message whenever the message has changed."""

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
    """Yield the message of `look` whenever it differs from the one before, until `look` says that it is the last.

    Args:
        look: Returns the current message, and whether it is the last one.
        stopping: Is set when the server is told to stop.
        poll_seconds: The time between two calls of `look`.

    Raises:
        Unavailable: The server is stopping. Otherwise open watches would delay its end.
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
