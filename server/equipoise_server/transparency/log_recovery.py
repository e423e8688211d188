"""Going on with the log after the store was restored from an older copy.

What was lost cannot be had back: whoever holds a checkpoint from the lost part sees that the log does not contain
it, and that is right. But no size may ever have two roots under one key. So the log goes on beyond all that may
have been shown: with records that say so, up to a size that the guard did not know; or, where the guard is lost and
nobody knows the sizes, under a new key.
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
    """Let the log go on at a size that the guard does not know; how many records say so, none if all is there.

    In one step, so that no size in between is ever the log's.
    """
    if tree_heads.root_at(connection, known.size) == known.root:
        return 0
    missing = max(0, known.size - tree_heads.newest(connection).size) + 1
    lost = RestorationItem(known.size, known.root, to_microseconds(now))
    for _ in range(missing):
        record(connection, Kind.LOG_RESTORED, [make_item(lost, Audience.ROUND)], now=now)
    restored = (records.c.kind == Kind.LOG_RESTORED.value) & records.c.log_index.is_(None)
    query = select(records.c.position, records.c.leaf).where(restored).order_by(records.c.position)
    due = dict(due_records(connection, now))
    due |= {row.position: row.leaf for row in connection.execute(query)}
    enter(connection, list(due.items()))
    return missing
