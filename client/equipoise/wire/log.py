"""What is shown of the verifiable log, as messages, and back."""

from __future__ import annotations

from equipoise.model.log import ItemOpening, RecordOpening, SealedSeed
from equipoise.v1 import auditor_pb2


def record_opening_to_message(record: RecordOpening) -> auditor_pb2.RecordOpening:
    """The message of a record of the log with all its items."""
    items = [auditor_pb2.ItemOpening(content=item.content, salt=item.salt, hash=item.hash) for item in record.items]
    return auditor_pb2.RecordOpening(index=record.index, leaf=record.leaf, items=items, padding=record.padding)


def record_opening_from_message(message: auditor_pb2.RecordOpening) -> RecordOpening:
    """A record of the log with all its items."""
    items = tuple(ItemOpening(item.content, item.salt, item.hash) for item in message.items)
    return RecordOpening(message.index, message.leaf, items, tuple(message.padding))


def sealed_seed_to_message(seed: SealedSeed) -> auditor_pb2.SealedSeed:
    """The message of a sealed seed."""
    return auditor_pb2.SealedSeed(key_id=seed.key_id, sealed=seed.sealed)


def sealed_seed_from_message(message: auditor_pb2.SealedSeed) -> SealedSeed:
    """A sealed seed."""
    return SealedSeed(message.key_id, message.sealed)
