"""Recovery of the log after the store was restored from an older copy.

Lost entries cannot be recovered. Whoever has a checkpoint from the lost part sees that the log does not contain it;
this is intended. But no size may ever have two roots under one key. So the log continues at a size that the guard
does not know: it is filled up with records that state the restoration. Where the guard is lost too, nobody knows
which sizes were shown, and the log continues under a new key.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, select

from equipoise.model.times import to_microseconds
from equipoise.records.log_items import RestorationItem
from equipoise.records.record import Audience, Kind
from equipoise.records.record_layouts import make_item
from equipoise_server.storage import tree_heads
from equipoise_server.storage.tables.transparency import records
from equipoise_server.storage.tree_heads import TreeHead
from equipoise_server.transparency.record_writer import record
from equipoise_server.transparency.sequencing import due_records, enter


def go_on_beyond(connection: Connection, known: TreeHead, now: datetime) -> int:
    """Extend the log beyond the size that the guard knows, in one step, so that no size in between is ever stored.

    The records of the restoration come before all others that are due, so that the first one's index says how much
    of the lost log is left.

    Args:
        connection: of a transaction that writes.
        known: the log's size and root as the guard knows them.
        now: the time of the restoration.

    Returns:
        How many records of the restoration were added; 0 where the log contains what the guard knows.
    """
    if tree_heads.root_at(connection, known.size) == known.root:
        return 0
    missing = max(0, known.size - tree_heads.newest(connection).size) + 1
    lost = RestorationItem(known.size, known.root, to_microseconds(now))
    for _ in range(missing):
        record(connection, Kind.LOG_RESTORED, [make_item(lost, Audience.ROUND)], now=now)
    restored = (records.c.kind == Kind.LOG_RESTORED.value) & records.c.log_index.is_(None)
    query = select(records.c.position, records.c.leaf).where(restored).order_by(records.c.position)
    # First of all that is due: the entry before them is the last that the older copy had.
    due = {row.position: row.leaf for row in connection.execute(query)}
    for position, leaf in due_records(connection, now):
        due.setdefault(position, leaf)
    enter(connection, list(due.items()))
    return missing
