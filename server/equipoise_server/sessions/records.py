"""What the sessions service gives. Frozen, free of protobuf and of the store."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AnsweredRecord:
    """One answer as it was stored before it was sent. `chunk`: `equipoise.wire.results.answers_to_chunk`.

    `sequence` counts the analyst's statements from 1; `slot` is the place in the session's one order; `envelope` is
    the signed receipt of everything up to it, `equipoise.records.receipts`.
    """

    sequence: int
    slot: int
    chunk: bytes
    envelope: bytes
