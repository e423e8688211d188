"""What an analyst verifies a round with, piece by piece, once the end of the round is in the log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

from equipoise.errors import Unavailable
from equipoise_server.rounds.analyst_views import AnalystViews

PIECE_BYTES = 1 << 18
READ_BYTES = 8 * PIECE_BYTES  # of a workload at once: a store reads all of it, however little is asked for
PATIENCE_SECONDS = 20.0  # until the log, which is looked after every half second, has come to the round's end
PAUSE_SECONDS = 0.1
NOT_LOGGED = "the end of the round is not in the log yet; try again"


async def awaited(look: Callable[[], Awaitable[bytes | None]]) -> bytes:
    """What `look` finds, asked again until it finds something. Raises `Unavailable` where that takes too long."""
    end = time.monotonic() + PATIENCE_SECONDS
    while (evidence := await look()) is None:
        if time.monotonic() >= end:
            raise Unavailable(NOT_LOGGED)
        await asyncio.sleep(PAUSE_SECONDS)
    return evidence


def evidence_pieces(data: bytes) -> Iterator[bytes]:
    """Evidence, or some of a workload, piece by piece."""
    for first in range(0, len(data), PIECE_BYTES):
        yield data[first : first + PIECE_BYTES]


def workload_pieces(views: AnalystViews, analyst: str, round_id: str) -> Iterator[bytes]:
    """Yield an analyst's workload, piece by piece; none where there is none.

    Between pieces nothing is held open: a reader that stops reading costs memory for a few of them only.
    """
    first = 0
    while some := views.submitted(analyst, round_id, first, READ_BYTES):
        yield from evidence_pieces(some)
        first += len(some)
