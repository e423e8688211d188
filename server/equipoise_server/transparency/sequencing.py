"""Adds records to the log at their publish times, and signs checkpoints.

The order of the steps makes a crash at any point harmless:

1. records that are due get the next indices, the tree grows, and its new size is stored with its root;
2. the guard is advanced to that size and root;
3. only then is the checkpoint signed, and shown.

The size is a key in the store, so only one of two servers can store a root for it. The guard knows every checkpoint
that anybody may have seen, so a copy of the store from before such a checkpoint is refused. Therefore no size ever
has two roots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, case, or_, select

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
    """Sequences the log of one store, with its guard and its keys. Safe to use from several threads and servers."""

    store: Store
    guard: Guard
    signer: Signer

    def sequence(self, now: datetime, reached: datetime | None = None) -> None:
        """Add all due records to the log, and sign a checkpoint. Without due records it is one read of the store.

        The next call, at any server, completes what a crash or a failure interrupted.

        Args:
            now: what the clock says.
            reached: where the clock is not trusted, a time that has come for certain; None: `now`.
        """
        with self.store.read() as connection:
            due = bool(due_records(connection, now, 1, reached))
            head = tree_heads.newest(connection)
            signed = head.size == 0 or log.signed_head(connection, head.size) is not None
        if due:
            with committing(self.store, "log") as connection:
                # Refuse to extend an older copy, even one that replaced the store while this server runs.
                self.guard.check(connection)
                due = append_due(connection, now, reached)
        if due or not signed:
            self.guard.advance(self.store)
            self._sign()

    def _sign(self) -> None:
        """Sign the size and root that the guard knows, and nothing else, unless that size is signed already."""
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


def append_due(connection: Connection, now: datetime, reached: datetime | None = None) -> bool:
    """Add every due record to the log, in a transaction that writes; return whether there was any."""
    due = due_records(connection, now, reached=reached)
    if due:
        enter(connection, due)
    return bool(due)


def enter(connection: Connection, due: Sequence[tuple[int, bytes]]) -> None:
    """Give records the next indices of the log, in the order given, in one step.

    `due`: the position and leaf of each record.
    """
    first = log.append(connection, [leaf for _, leaf in due]).size - len(due)
    placed = records.update().where(records.c.position == bindparam("at")).values(log_index=bindparam("index"))
    connection.execute(placed, [{"at": at, "index": index} for index, (at, _) in enumerate(due, start=first)])


def due_records(
    connection: Connection, now: datetime, limit: int | None = None, reached: datetime | None = None
) -> list[tuple[int, bytes]]:
    """Return position and leaf of the records that are due and not in the log yet, in the order of the log.

    That is the order of their publish times, then of their steps. Releases with one publish time follow the order
    in which their rounds were opened, because the order of their computation depends on the workloads.

    Args:
        connection: to the store.
        now: what the clock says.
        limit: the most records that are returned; None: all.
        reached: where the clock is not trusted, a time that has come for certain, for which what is about rounds
            and datasets waits: a release has its time. Revocations and keys have the clock's own, and do not wait.
    """
    waiting = records.c.log_index.is_(None) & (records.c.publish_time <= to_microseconds(now))
    if reached is not None:
        about_none = (records.c.round_id == "") & (records.c.dataset == "")
        waiting &= or_(about_none, records.c.publish_time <= to_microseconds(reached))
    computed = records.c.kind == Kind.ROUND_RELEASED.value
    opening = select(rounds.c.position).where(rounds.c.id == records.c.round_id).scalar_subquery()
    query = select(records.c.position, records.c.leaf).where(waiting)
    query = query.order_by(records.c.publish_time, case((computed, opening), else_=0), records.c.position)
    return [(row.position, row.leaf) for row in connection.execute(query.limit(limit))]
