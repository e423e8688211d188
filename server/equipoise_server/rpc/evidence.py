"""What an analyst verifies a round with, once the round has ended and its end is in the log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from equipoise.errors import Unavailable, WrongState
from equipoise_server.rounds import evidence
from equipoise_server.rounds.service import Rounds
from equipoise_server.rounds.states import RoundState
from equipoise_server.storage.store import Store
from equipoise_server.transparency.signing import Signer

PIECE_BYTES = 1 << 18
PATIENCE_SECONDS = 20.0  # until the log, which is looked after every half second, has come to the round's end
PAUSE_SECONDS = 0.1
NOT_ENDED = "the round has not ended yet, so there is nothing to verify"
NOT_LOGGED = "the end of the round is not in the log yet; try again"


@dataclass(frozen=True)
class Evidences:
    """Reads what was recorded."""

    rounds: Rounds
    store: Store
    signer: Signer
    deployment: str

    def evidence(self, analyst: str, round_id: str, since_size: int) -> bytes | None:
        """The evidence, JSON; None while the log has not come to the round's end.

        Raises `NotFound` without a share, `WrongState` before the round's results can be read or it was aborted,
        `OutOfRange` for a checkpoint of a size that was never shown, `DataLoss`.
        """
        record = self.rounds.get_for_analyst(analyst, round_id)
        # RELEASED is shown to analysts from the release time on: evidence opens when the streams do.
        if record.state not in (RoundState.RELEASED, RoundState.ABORTED):
            raise WrongState(NOT_ENDED)
        with self.store.read() as connection:
            found = evidence.evidence_of(connection, self.signer, self.deployment, analyst, round_id, since_size)
        return None if found is None else found.to_bytes()

    def workload(self, analyst: str, round_id: str) -> Iterator[bytes]:
        """The bytes of the analyst's workload in pieces, none where there is none."""
        with self.store.read() as connection:
            length = evidence.workload_length(connection, analyst, round_id)
        for first in range(0, length, PIECE_BYTES):
            # Between pieces nothing is held open: a reader that stops reading costs memory for one only.
            with self.store.read() as connection:
                piece = evidence.workload_piece(connection, analyst, round_id, first, PIECE_BYTES)
            yield piece


async def awaited(look: Callable[[], Awaitable[bytes | None]]) -> bytes:
    """What `look` finds, asked again until it finds something. Raises `Unavailable` where that takes too long."""
    end = time.monotonic() + PATIENCE_SECONDS
    while (found := await look()) is None:
        if time.monotonic() >= end:
            raise Unavailable(NOT_LOGGED)
        await asyncio.sleep(PAUSE_SECONDS)
    return found


def pieces(data: bytes) -> Iterator[bytes]:
    """The bytes in messages of a moderate size."""
    for first in range(0, len(data), PIECE_BYTES):
        yield data[first : first + PIECE_BYTES]
