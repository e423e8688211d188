"""Writing down what was done at a step, in the transaction that does it, and finding it again.

A record is in the store from its step on and enters the log at its publish time, by `sequencing`. So what is
computed before a release shows to nobody who sees the log, and a step that is rolled back leaves no record.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from equipoise.errors import DataLoss
from equipoise.model.times import to_microseconds
from equipoise.records.merkle import root_of
from equipoise.records.record import Audience, Item, Kind, Record, item_hash, leaf_bytes, make_record
from equipoise_server.storage.tables import record_items, records


def record(
    connection: Connection,
    kind: Kind,
    items: Sequence[Item],
    *,
    now: datetime,
    publish_time: datetime | None = None,
    dataset: str = "",
    round_id: str = "",
) -> Record:
    """Write the record of a step; it enters the log at `publish_time`, or at once.

    Never before an earlier record of its round, of a dataset or of a key that is still to enter, also where the
    clock was set back in between.
    """
    made = make_record(kind, items)
    waiting = select(func.max(records.c.publish_time)).where(
        records.c.log_index.is_(None), records.c.round_id.in_(("", round_id))
    )
    earliest = connection.execute(waiting).scalar_one() or 0
    position = connection.execute(
        records.insert()
        .values(
            kind=kind.value,
            dataset=dataset,
            round_id=round_id,
            root=made.root,
            leaf=made.leaf,
            publish_time=max(earliest, to_microseconds(publish_time or now)),
        )
        .returning(records.c.position)
    ).scalar_one()
    openings: list[dict[str, Any]] = [
        {"audience": item.audience.value, "analyst": item.analyst, "salt": item.salt, "content": item.content}
        for item in made.items
    ]
    openings += [{"audience": "", "analyst": "", "salt": None, "content": None}] * len(made.padding)
    connection.execute(
        record_items.insert(),
        [
            {"record": position, "place": place, "hash": hashed, **opening}
            for place, (hashed, opening) in enumerate(zip(made.hashes, openings, strict=True))
        ],
    )
    return made


def check_records(connection: Connection) -> int:
    """Compute every record's root and leaf from its items again; how many there are. Raises `DataLoss`."""
    query = select(records.c.position, records.c.kind, records.c.root, records.c.leaf).order_by(records.c.position)
    count = 0
    for row in connection.execute(query):
        count += 1
        hashes = []
        damaged = f"record {row.position}, {row.kind}, is damaged"
        mine = select(record_items).where(record_items.c.record == row.position).order_by(record_items.c.place)
        for item in connection.execute(mine):
            hashes.append(item.hash)
            if item.content is None:
                continue
            if item_hash(item.salt, item.content) != item.hash:
                raise DataLoss(f"{damaged}: item {len(hashes) - 1} is another")
            # Whom the hash is of, and who is shown the item, is one and the same.
            shown_to = item.analyst if item.audience == Audience.ANALYST else None
            if json.loads(item.content).get("analyst") != shown_to:
                raise DataLoss(f"{damaged}: item {len(hashes) - 1} would be shown to another")
        root = root_of(hashes)
        if row.kind not in {*Kind} or (row.root, row.leaf) != (root, leaf_bytes(Kind(row.kind), root, len(hashes))):
            raise DataLoss(f"{damaged}: its root is not that of its items")
    return count


def record_root(connection: Connection, kind: Kind, *, dataset: str = "", round_id: str = "") -> bytes:
    """The root of the newest record of this kind, of a dataset or a round. Raises `DataLoss` without one."""
    root = find_root(connection, kind, dataset=dataset, round_id=round_id)
    if root is None:
        raise DataLoss(f"there is no {kind} record of {round_id or dataset}")
    return root


def find_root(connection: Connection, kind: Kind, *, dataset: str = "", round_id: str = "") -> bytes | None:
    """As `record_root`, but None where there is none."""
    mine = records.c.round_id == round_id if round_id else records.c.dataset == dataset
    query = select(records.c.root).where(mine, records.c.kind == kind.value)
    return connection.execute(query.order_by(records.c.position.desc()).limit(1)).scalar_one_or_none()
