"""What a server shows of its verifiable log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ItemOpening:
    """An item of a record. Content and salt are empty where they were removed with an analyst."""

    content: bytes
    salt: bytes
    hash: bytes


@dataclass(frozen=True)
class RecordOpening:
    """A record of the log with all its items: `leaf` is entry number `index`; `padding` are the hashes behind."""

    index: int
    leaf: bytes
    items: tuple[ItemOpening, ...]
    padding: tuple[bytes, ...]


@dataclass(frozen=True)
class SealedSeed:
    """A round's seed as the auditor's key with this id opens it (`equipoise.records.sealed_seeds.open_sealed`)."""

    key_id: str
    sealed: bytes
