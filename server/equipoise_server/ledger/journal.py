"""The budget journal in the store: append-only, without gaps, a hash chain as `equipoise.model.journal` defines it.

The journal proves the amounts on the accounts only together with a digest that is kept elsewhere. Whoever can write
the store can write a new chain, but cannot change an entry and keep the last digest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from equipoise.accounting import Cost
from equipoise.errors import DataLoss
from equipoise.model.accounts import JournalEntry
from equipoise.model.journal import START, entry_digest, verify
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise_server.storage.tables.ledger import journal

PAGE = 1000  # entries that are read at once


@dataclass(frozen=True)
class Head:
    """The newest entry's sequence number and digest; 0 and zeros where the journal is empty."""

    sequence: int
    digest: bytes


def head(connection: Connection) -> Head:
    """Return the newest entry's sequence number and digest."""
    row = connection.execute(
        select(journal.c.sequence, journal.c.digest).order_by(journal.c.sequence.desc()).limit(1)
    ).first()
    return Head(0, START) if row is None else Head(row.sequence, row.digest)


def digest_at(connection: Connection, sequence: int) -> bytes | None:
    """Return the digest of one entry, or None where there is no such entry. Entry 0 has the chain's start value."""
    if sequence == 0:
        return START
    return connection.execute(select(journal.c.digest).where(journal.c.sequence == sequence)).scalar_one_or_none()


def digests(connection: Connection, after_sequence: int, last_sequence: int) -> Iterator[bytes]:
    """Yield the digests of entries, oldest first.

    Args:
        connection: Reads the store.
        after_sequence: The sequence number that the first one follows; 0 for the beginning.
        last_sequence: That of the last one.

    Raises:
        DataLoss: An entry is missing.
    """
    wanted = (journal.c.sequence > after_sequence) & (journal.c.sequence <= last_sequence)
    query = select(journal.c.sequence, journal.c.digest).where(wanted).order_by(journal.c.sequence)
    with connection.execute(query, execution_options={"yield_per": PAGE}) as rows:
        for expected, row in enumerate(rows, after_sequence + 1):
            if row.sequence != expected:
                raise DataLoss(f"entry {expected} of the budget journal is missing")
            yield row.digest


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
    """Write the next entry, in the transaction that changes the account.

    Args:
        connection: of that transaction.
        time: of the change.
        action: the kind of entry, such as "reserve" or "set-cap".
        account: the account's name; empty for an entry without an account.
        cost: the amount, in whole units.
        events: the entry's further fields or privacy events, as JSON.
        round_id: the round; empty where there is none.
    """
    last = head(connection)
    sequence, previous = last.sequence + 1, last.digest
    entry = JournalEntry(sequence, time, action, account, round_id, cost, events, digest=b"")
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


def page(connection: Connection, after_sequence: int, limit: int) -> list[JournalEntry]:
    """Return at most `limit` entries after the number `after_sequence`, oldest first."""
    rows = connection.execute(
        select(journal).where(journal.c.sequence > after_sequence).order_by(journal.c.sequence).limit(limit)
    )
    return [_record(row) for row in rows]


def of_account(connection: Connection, account: str, after_sequence: int, limit: int | None) -> list[JournalEntry]:
    """Return at most `limit` entries of one account after a sequence number, oldest first; None: all of them.

    Args:
        connection: to the store.
        account: the account's name.
        after_sequence: the number of the last entry that is not wanted; 0: from the first on.
        limit: how many entries at most.
    """
    of_it = (journal.c.account == account) & (journal.c.sequence > after_sequence)
    rows = connection.execute(select(journal).where(of_it).order_by(journal.c.sequence).limit(limit))
    return [_record(row) for row in rows]


def of_action(connection: Connection, action: str, after_sequence: int = 0) -> list[JournalEntry]:
    """Return every entry with this action after a sequence number, oldest first.

    Args:
        connection: to the store.
        action: of the entries.
        after_sequence: the number of the last entry that is not wanted; 0: from the first on.
    """
    wanted = (journal.c.action == action) & (journal.c.sequence > after_sequence)
    rows = connection.execute(select(journal).where(wanted).order_by(journal.c.sequence))
    return [_record(row) for row in rows]


def verified(connection: Connection, page_size: int = PAGE) -> Iterator[JournalEntry]:
    """Yield every stored entry, oldest first, after checking its place in the chain. Raises `DataLoss`."""
    digest, sequence = START, 0
    while entries := page(connection, sequence, page_size):
        digest = verify(entries, digest, sequence + 1)
        sequence = entries[-1].sequence
        yield from entries


def _record(row: Row[Any]) -> JournalEntry:
    try:
        cost = Cost(row.rho, row.epsilon, row.delta, row.divergence)
    except ValueError:
        raise DataLoss(f"the budget journal is damaged at entry {row.sequence}") from None
    return JournalEntry(
        row.sequence,
        from_microseconds(row.time),
        row.action,
        row.account,
        row.round_id,
        cost,
        row.events,
        row.digest,
    )
