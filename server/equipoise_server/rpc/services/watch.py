"""Watches a round or a request: polls it, and sends its message whenever the message has changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from equipoise.errors import Unavailable
from equipoise.model.rounds import Progress
from equipoise.v1 import types_pb2
from equipoise.wire.rounds import PROGRESS

POLL_SECONDS = 0.2
APPEAR_SECONDS = 10.0  # after which a request that was never found is waited for no longer

Shown = TypeVar("Shown", types_pb2.Round, types_pb2.RoundDetail, types_pb2.Progress)


def progress_of(
    find: Callable[[], Progress | None],
) -> Callable[[], Awaitable[tuple[types_pb2.Progress, bool]]]:
    """Return what `watch` looks at: how far a request is, until it is not found any more.

    A watch may begin before its request, so one that was never found is waited for a while.

    Args:
        find: Returns how far it is; None where it is not found.
    """
    until, shown = time.monotonic() + APPEAR_SECONDS, types_pb2.Progress()
    seen = False

    async def look() -> tuple[types_pb2.Progress, bool]:
        nonlocal shown, seen
        found = find()
        if found is not None:
            seen, shown = True, PROGRESS.write(found, "progress")
        return shown, found is None and (seen or time.monotonic() > until)

    return look


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
