"""Streams the evidence and the workload with which an analyst verifies a round, piece by piece."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

from equipoise.errors import Unavailable
from equipoise_server.rounds.analyst_views import AnalystViews

PIECE_BYTES = 1 << 18
READ_BYTES = 8 * PIECE_BYTES  # of a workload at once; a store reads all of it, however few bytes are wanted
PATIENCE_SECONDS = 20.0  # until the log, which grows every half second, contains the round's end
PAUSE_SECONDS = 0.1
NOT_LOGGED = "the end of the round is not in the log yet; try again"


async def awaited(look: Callable[[], Awaitable[bytes | None]]) -> bytes:
    """Call `look` until it returns evidence, and return the evidence. Raises `Unavailable` after 20 seconds."""
    end = time.monotonic() + PATIENCE_SECONDS
    while (evidence := await look()) is None:
        if time.monotonic() >= end:
            raise Unavailable(NOT_LOGGED)
        await asyncio.sleep(PAUSE_SECONDS)
    return evidence


def evidence_pieces(data: bytes) -> Iterator[bytes]:
    """Yield evidence, or a part of a workload, in pieces of 256 KiB."""
    for first in range(0, len(data), PIECE_BYTES):
        yield data[first : first + PIECE_BYTES]


def workload_pieces(views: AnalystViews, analyst: str, round_id: str) -> Iterator[bytes]:
    """Yield an analyst's workload, piece by piece; nothing if there is no workload.

    Nothing stays open between pieces, so a reader that stops reading costs the memory of a few pieces only. The
    last piece is held back until all are known to be what was sealed: no reader gets the whole of anything else.

    Args:
        views: reads the store for analysts.
        analyst: the caller's name.
        round_id: the round or session.

    Raises:
        DataLoss: the stored workload is not the one that is on record.
    """
    check, first, held = views.workload_check(analyst, round_id), 0, b""
    while some := views.submitted(analyst, round_id, first, READ_BYTES):
        check.take(some)
        first += len(some)
        for piece in evidence_pieces(some):
            if held:
                yield held
            held = piece
    check.end()
    if held:
        yield held
