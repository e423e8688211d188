"""Giving records their places in the log, at their publish times, and signing how far it has come.

Order matters, and makes a crash at any point harmless:

1. records that are due get the next places, the tree grows, and its new size is stored with its root;
2. the guard is advanced to that size and root;
3. only then is the checkpoint signed, and shown.

The size is a key in the store, so that of two servers one stores a root for it. And no copy of the store from
before a checkpoint that anybody may have seen is accepted again, as the guard knows it. So one size never has two
roots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, case, select

from equipoise.errors import DataLoss
from equipoise.model.times import to_microseconds
from equipoise.records.record import Kind
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.storage import tree_heads
from equipoise_server.storage.operations import committing
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.round import rounds
from equipoise_server.storage.tables.transparency import checkpoints, records
from equipoise_server.transparency import log
from equipoise_server.transparency.signing import Signer


@dataclass(frozen=True)
class Sequencer:
    """Of one store, its guard and its log's keys. Safe to use from several threads and servers."""

    store: Store
    guard: Guard
    signer: Signer

    def sequence(self, now: datetime) -> None:
        """Bring into the log what is due, and sign how far it has come; costs one look where there is nothing.

        What a crash, or a failure, has cut off is done by the next call, at any server.
        """
        with self.store.read() as connection:
            due = bool(due_records(connection, now, 1))
            head = tree_heads.newest(connection)
            signed = head.size == 0 or log.signed_head(connection, head.size) is not None
        if due:
            with committing(self.store, "log") as connection:
                # Not upon an older copy, also where it came into the store's place under a server that runs.
                self.guard.check(connection)
                due = append_due(connection, now)
        if due or not signed:
            self.guard.advance(self.store)
            self._sign()

    def _sign(self) -> None:
        """Sign what the guard knows, and nothing else; where that is signed already, it stays as it is."""
        snapshot = self.guard.read()
        if snapshot is None or snapshot.log.size == 0:
            return
        with committing(self.store, "checkpoint") as connection:
            if tree_heads.root_at(connection, snapshot.log.size) != snapshot.log.root:
                raise DataLoss("the store's log is not the one that the guard knows")
            if log.signed_head(connection, snapshot.log.size) is None:
                note = self.signer.checkpoint(connection, snapshot.log)
                here = checkpoints.c.size == snapshot.log.size
                connection.execute(checkpoints.update().where(here).values(note=note))


def append_due(connection: Connection, now: datetime) -> bool:
    """Give every record that is due its place, in a transaction that writes; whether there was any."""
    due = due_records(connection, now)
    if due:
        enter(connection, due)
    return bool(due)


def enter(connection: Connection, due: Sequence[tuple[int, bytes]]) -> None:
    """Give these records, by position and leaf, the next places in this order, in one step of the log."""
    first = log.append(connection, [leaf for _, leaf in due]).size - len(due)
    placed = records.update().where(records.c.position == bindparam("at")).values(log_index=bindparam("index"))
    connection.execute(placed, [{"at": at, "index": index} for index, (at, _) in enumerate(due, start=first)])


def due_records(connection: Connection, now: datetime, limit: int | None = None) -> list[tuple[int, bytes]]:
    """Position and leaf of the records whose time has come and that have no place yet, in the order of the log.

    That is the order of their times, then of their steps; but releases of one time come in the order in which their
    rounds were opened: which was computed first depends on what was asked.
    """
    waiting = records.c.log_index.is_(None) & (records.c.publish_time <= to_microseconds(now))
    computed = records.c.kind == Kind.ROUND_RELEASED.value
    opening = select(rounds.c.position).where(rounds.c.id == records.c.round_id).scalar_subquery()
    query = select(records.c.position, records.c.leaf).where(waiting)
    query = query.order_by(records.c.publish_time, case((computed, opening), else_=0), records.c.position)
    return [(row.position, row.leaf) for row in connection.execute(query.limit(limit))]
