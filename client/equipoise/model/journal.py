"""The budget journal's chain: each entry hashed onto the one before.

The server appends with these functions and an auditor checks with them, so the two cannot drift apart. Who can
write the store can write a new chain, but cannot change an entry and keep the last digest; the verifiable log
commits to digests along the way (`equipoise.records.record`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from equipoise.errors import DataLoss
from equipoise.model.accounts import JournalEntry
from equipoise.model.times import to_microseconds

START = bytes(32)  # what the first entry is hashed onto


def entry_digest(previous: bytes, entry: JournalEntry) -> bytes:
    """SHA-256 of the previous digest (32 bytes) followed by the entry, without its own digest, as JSON."""
    fields: dict[str, object] = {
        "version": 1,
        "sequence": entry.sequence,
        "time": to_microseconds(entry.time),
        "action": entry.action,
        "account": entry.account,
        "round": entry.round_id,
        "rho": entry.cost.rho,
        "epsilon": entry.cost.epsilon,
        "delta": entry.cost.delta,
        "divergence": entry.cost.divergence,
        "events": entry.events,
    }
    encoded = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    return hashlib.sha256(previous + encoded).digest()


def verify(entries: Iterable[JournalEntry], previous: bytes = START, first: int = 1) -> bytes:
    """Check that entries continue the chain without a gap.

    Args:
        entries: of the journal, in order.
        previous: the digest before the first of them, 32 bytes.
        first: the sequence number that the first of them must have.

    Returns:
        The digest of the last entry, 32 bytes.

    Raises:
        DataLoss: an entry is missing, repeated, or does not follow from the one before it.
    """
    for expected, entry in enumerate(entries, start=first):
        if entry.sequence != expected or entry.digest != entry_digest(previous, entry):
            raise DataLoss(f"the budget journal is damaged at entry {expected}")
        previous = entry.digest
    return previous
