"""What is made of a round's outcome: the exact messages of every analyst's stream, and what commits to each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from equipoise.records.record import stream_start, stream_step
from equipoise.wire.results import results_to_chunks
from equipoise_server.mechanisms.interface import OnStep, Outcome

CHUNKS_IN_PART = 64  # about 1.1 MB: the store's writer is not held for long, and memory stays constant


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
    """Yield every analyst's stream, some messages at a time, so that never more than these are held."""
    for done, (analyst, answers) in enumerate(outcome.answers.items()):
        progress("store", done, len(outcome.answers))
        chunks = results_to_chunks(round_id, answers.values, answers.methods, answers.bounds)
        first_sequence = 1
        while part := list(itertools.islice(chunks, CHUNKS_IN_PART)):
            yield StreamPart(analyst, first_sequence, part)
            first_sequence += len(part)


class Digests:
    """What commits to every stream, chained while its messages are made."""

    def __init__(self, round_id: str) -> None:
        self._start = stream_start(round_id)
        self._chained: dict[str, tuple[bytes, int]] = {}

    def take(self, part: StreamPart) -> None:
        """Chain on the next messages of a stream."""
        digest, messages = self._chained.get(part.analyst, (self._start, 0))
        for chunk in part.chunks:
            digest = stream_step(digest, chunk)
        self._chained[part.analyst] = digest, messages + len(part.chunks)

    def streams(self, outcome: Outcome) -> dict[str, StreamDigest]:
        """By analyst, once all messages of the outcome have been taken."""
        return {
            analyst: StreamDigest(digest, messages, len(outcome.answers[analyst].values))
            for analyst, (digest, messages) in self._chained.items()
        }
