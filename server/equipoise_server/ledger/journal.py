"""The budget journal: append-only, without gaps, each entry hashed onto the one before.

Trusted for the amounts on the accounts only together with a digest kept elsewhere: who can write the store
can write a new chain, but cannot change an entry and keep the last digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from equipoise.accounting import Cost
from equipoise.errors import DataLoss
from equipoise_server.storage.tables import journal
from equipoise_server.storage.times import from_microseconds, to_microseconds

START = bytes(32)  # what the first entry is hashed onto


@dataclass(frozen=True)
class JournalRecord:
    """One entry. `action` is "open-account", "reserve", "spend" or "release"; `events` is JSON.

    `round_id` is empty where there is none; `digest` is SHA-256 over the previous digest and this entry.
    """

    sequence: int
    time: datetime
    action: str
    account: str
    round_id: str
    cost: Cost
    events: str
    digest: bytes


def append(
    connection: Connection,
    time: datetime,
    action: str,
    *,
    account: str,
    cost: Cost,
    events: str,
    round_id: str = "",
) -> None:
    """Write the next entry, in the transaction that changes the account."""
    last = connection.execute(
        select(journal.c.sequence, journal.c.digest).order_by(journal.c.sequence.desc()).limit(1)
    ).first()
    sequence, previous = (last.sequence + 1, last.digest) if last is not None else (1, START)
    entry = JournalRecord(sequence, time, action, account, round_id, cost, events, digest=b"")
    connection.execute(
        journal.insert().values(
            sequence=sequence,
            time=to_microseconds(time),
            action=action,
            account=account,
            round_id=round_id,
            rho=cost.rho,
            epsilon=cost.epsilon,
            delta=cost.delta,
            events=events,
            digest=entry_digest(previous, entry),
        )
    )


def entry_digest(previous: bytes, entry: JournalRecord) -> bytes:
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
        "events": entry.events,
    }
    encoded = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    return hashlib.sha256(previous + encoded).digest()


def page(connection: Connection, after_sequence: int, limit: int) -> list[JournalRecord]:
    """At most `limit` entries after a sequence number, from the oldest."""
    rows = connection.execute(
        select(journal).where(journal.c.sequence > after_sequence).order_by(journal.c.sequence).limit(limit)
    )
    return [
        JournalRecord(
            row.sequence,
            from_microseconds(row.time),
            row.action,
            row.account,
            row.round_id,
            Cost(rho=row.rho, epsilon=row.epsilon, delta=row.delta),
            row.events,
            row.digest,
        )
        for row in rows
    ]


def verify(entries: Iterable[JournalRecord], previous: bytes = START, first: int = 1) -> bytes:
    """Check that entries continue the chain without a gap; the last digest. Raises `DataLoss`."""
    for expected, entry in enumerate(entries, start=first):
        if entry.sequence != expected or entry.digest != entry_digest(previous, entry):
            raise DataLoss(f"the budget journal is damaged at entry {expected}")
        previous = entry.digest
    return previous


def verify_stored(connection: Connection, page_size: int = 1000) -> None:
    """Check the whole stored journal, page by page. Raises `DataLoss`."""
    digest, sequence = START, 0
    while entries := page(connection, sequence, page_size):
        digest = verify(entries, digest, sequence + 1)
        sequence = entries[-1].sequence
