"""The budget journal: append-only, without gaps, each entry hashed onto the one before.

Trusted for the amounts on the accounts only together with a digest kept elsewhere: who can write the store
can write a new chain, but cannot change an entry and keep the last digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from equipoise.accounting import Cost
from equipoise.errors import DataLoss
from equipoise_server.storage.tables import journal
from equipoise_server.storage.times import from_microseconds, to_microseconds

START = bytes(32)  # what the first entry is hashed onto


@dataclass(frozen=True)
class JournalRecord:
    """One entry; `events` is JSON. `action` is one of

    "open-account": an account's cap and how it counts, and beside which others for the same records; "set-cap":
    another cap; "reserve", "spend" and "release": a round's charge; "run": data may be touched from here on;
    "write-off": what a lost part of the journal may have spent.

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


@dataclass(frozen=True)
class Head:
    """The newest entry; 0 and zeros where there is none."""

    sequence: int
    digest: bytes


def head(connection: Connection) -> Head:
    """How far the journal has come."""
    row = connection.execute(
        select(journal.c.sequence, journal.c.digest).order_by(journal.c.sequence.desc()).limit(1)
    ).first()
    return Head(0, START) if row is None else Head(row.sequence, row.digest)


def digest_at(connection: Connection, sequence: int) -> bytes | None:
    """The digest of one entry, or None where there is no such entry; entry 0 stands for the beginning."""
    if sequence == 0:
        return START
    return connection.execute(select(journal.c.digest).where(journal.c.sequence == sequence)).scalar_one_or_none()


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
    last = head(connection)
    sequence, previous = last.sequence + 1, last.digest
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
            divergence=cost.divergence,
            events=events,
            digest=entry_digest(previous, entry),
        )
    )


def entry_digest(previous: bytes, entry: JournalRecord) -> bytes:
    """SHA-256 of the previous digest (32 bytes) followed by the entry, without its own digest, as JSON.

    Version 2 is the one with a divergence; where that is 0, version 1 says the same.
    """
    counted = {"version": 2, "divergence": entry.cost.divergence} if entry.cost.divergence else {"version": 1}
    fields: dict[str, object] = {
        **counted,
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
    return [_record(row) for row in rows]


def of_account(connection: Connection, account: str, after_sequence: int, limit: int | None) -> list[JournalRecord]:
    """At most `limit` entries of one account after a sequence number, from the oldest."""
    mine = (journal.c.account == account) & (journal.c.sequence > after_sequence)
    rows = connection.execute(select(journal).where(mine).order_by(journal.c.sequence).limit(limit))
    return [_record(row) for row in rows]


def verify(entries: Iterable[JournalRecord], previous: bytes = START, first: int = 1) -> bytes:
    """Check that entries continue the chain without a gap; the last digest. Raises `DataLoss`."""
    for expected, entry in enumerate(entries, start=first):
        if entry.sequence != expected or entry.digest != entry_digest(previous, entry):
            raise DataLoss(f"the budget journal is damaged at entry {expected}")
        previous = entry.digest
    return previous


def verified(connection: Connection, page_size: int = 1000) -> Iterator[JournalRecord]:
    """The whole stored journal, read page by page and checked. Raises `DataLoss`."""
    digest, sequence = START, 0
    while entries := page(connection, sequence, page_size):
        digest = verify(entries, digest, sequence + 1)
        sequence = entries[-1].sequence
        yield from entries


def _record(row: Row[Any]) -> JournalRecord:
    return JournalRecord(
        row.sequence,
        from_microseconds(row.time),
        row.action,
        row.account,
        row.round_id,
        Cost(row.rho, row.epsilon, row.delta, row.divergence),
        row.events,
        row.digest,
    )
