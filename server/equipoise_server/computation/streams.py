"""Makes the exact messages of every analyst's stream of a round's outcome, and each stream's digest."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from equipoise.records.record import stream_start, stream_step
from equipoise.wire.results import results_to_chunks
from equipoise_server.mechanisms.interface import OnStep, Outcome

CHUNKS_IN_PART = 64  # about 1.1 MB; writing a part is short, and memory stays constant


@dataclass(frozen=True)
class StreamDigest:
    """The commitment to one analyst's result stream (`equipoise.records.record.stream_digest`), and its length."""

    digest: bytes
    messages: int
    queries: int


@dataclass(frozen=True)
class StreamPart:
    """The next messages of one analyst's stream; `first_sequence` is the first one's sequence number."""

    analyst: str
    first_sequence: int
    chunks: list[bytes]


def stream_parts(round_id: str, outcome: Outcome, progress: OnStep) -> Iterator[StreamPart]:
    """Yield every analyst's stream in parts of at most 64 messages, so that only one part is in memory."""
    for done, (analyst, answers) in enumerate(outcome.answers.items()):
        progress("store", done, len(outcome.answers))
        chunks = results_to_chunks(round_id, answers)
        first_sequence = 1
        while part := list(itertools.islice(chunks, CHUNKS_IN_PART)):
            yield StreamPart(analyst, first_sequence, part)
            first_sequence += len(part)


class Digests:
    """The digests of all streams, chained while their messages are made."""

    def __init__(self, round_id: str) -> None:
        self._start = stream_start(round_id)
        self._chained: dict[str, tuple[bytes, int]] = {}

    def take(self, part: StreamPart) -> None:
        """Extend a stream's chain by its next messages."""
        digest, messages = self._chained.get(part.analyst, (self._start, 0))
        for chunk in part.chunks:
            digest = stream_step(digest, chunk)
        self._chained[part.analyst] = digest, messages + len(part.chunks)

    def streams(self, outcome: Outcome) -> dict[str, StreamDigest]:
        """Return every stream's digest, by analyst. All messages of the outcome must have been taken before."""
        return {
            analyst: StreamDigest(digest, messages, len(outcome.answers[analyst]))
            for analyst, (digest, messages) in self._chained.items()
        }
