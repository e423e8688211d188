"""Writes the record of a step in the transaction of that step, and reads records again.

A record is in the store from its step on. `sequencing` adds it to the log at its publish time. So readers of the
log see nothing of what is computed before its release. A step that is rolled back leaves no record.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, select

from equipoise.errors import DataLoss, VerificationFailed
from equipoise.model.log import ItemOpening
from equipoise.model.times import to_microseconds
from equipoise.records.identity_items import LOGIN_EVENTS
from equipoise.records.item_parts import JournalHead
from equipoise.records.opened_records import check_hashes
from equipoise.records.record import Audience, Item, Kind, Record, make_record
from equipoise_server.ledger import journal
from equipoise_server.storage.tables.transparency import record_items, records


def record(
    connection: Connection,
    kind: Kind,
    items: Sequence[Item],
    *,
    now: datetime,
    publish_time: datetime | None = None,
    dataset: str = "",
    round_id: str = "",
    login_of: str | None = None,
) -> Record:
    """Write the record of a step, which enters the log at its publish time.

    A record never enters the log before an earlier record of its round, or of a dataset or a key, even if the clock
    was set back in between. That of a dataset does not enter before an earlier one of any round, either, but for
    releases, which wait for their time: rounds that were opened on an older version come first.

    Args:
        connection: of the step's transaction.
        kind: the kind of step.
        items: the record's items.
        now: the time of the step.
        publish_time: the earliest time at which the record enters the log; None: `now`.
        dataset: the dataset's name; empty where there is none.
        round_id: the round; empty where there is none.
        login_of: whom the record lets log in, or not any more; None where it does neither.

    Returns:
        The record, with its root and leaf.
    """
    made = make_record(kind, items)
    before: ColumnElement[bool] = records.c.round_id.in_(("", round_id))
    if dataset:
        before |= records.c.kind != Kind.ROUND_RELEASED.value
    waiting = select(func.max(records.c.publish_time)).where(records.c.log_index.is_(None), before)
    earliest = connection.execute(waiting).scalar_one() or 0
    position = connection.execute(
        records.insert()
        .values(
            kind=kind.value,
            dataset=dataset,
            round_id=round_id,
            login_of=login_of,
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


def journal_head(connection: Connection) -> JournalHead:
    """Return the budget journal's newest entry in the form in which records commit to it."""
    head = journal.head(connection)
    return JournalHead(head.sequence, head.digest)


def stored_openings(connection: Connection, position: int) -> tuple[tuple[ItemOpening, ...], tuple[bytes, ...]]:
    """Return a record's items in their order, and its padding hashes. The content of a removed item is empty."""
    query = select(record_items).where(record_items.c.record == position).order_by(record_items.c.place)
    rows = connection.execute(query).all()
    items = tuple(ItemOpening(row.content or b"", row.salt or b"", row.hash) for row in rows if row.audience)
    return items, tuple(row.hash for row in rows if not row.audience)


def check_records(connection: Connection) -> int:
    """Recompute every record's root and leaf from its items, and return the number of records.

    Raises `DataLoss` for any difference.
    """
    count = 0
    for row in connection.execute(select(records).order_by(records.c.position)):
        count += 1
        what = f"record {row.position}, {row.kind}, is damaged"
        try:
            leaf = check_hashes(row.leaf, *stored_openings(connection, row.position), what)
        except VerificationFailed as error:
            raise DataLoss(error.message) from None
        if (row.kind, row.root) != (leaf.kind.value, leaf.root):
            raise DataLoss(f"{what}: its root is not that of its items")
        _check_items(connection, row, what)
    return count


def _check_items(connection: Connection, row: Row[Any], what: str) -> None:
    """Check that the record is found by the round or dataset that its items name, and each item by its analyst.

    Raises `DataLoss`.
    """
    own = (record_items.c.record == row.position) & record_items.c.content.is_not(None)
    for item in connection.execute(select(record_items).where(own).order_by(record_items.c.place)):
        content = json.loads(item.content)
        if content.get("analyst") != (item.analyst if item.audience == Audience.ANALYST else None):
            raise DataLoss(f"{what}: item {item.place} would be shown to another")
        round_id = content.get("round", "")
        if (row.round_id, row.dataset) != (round_id, "" if round_id else content.get("dataset", "")):
            raise DataLoss(f"{what}: it is kept as one of another round or dataset")
        changes_login = row.kind == Kind.IDENTITY_CHANGED and content.get("event") in LOGIN_EVENTS
        if row.login_of != (content["name"] if changes_login else None):
            raise DataLoss(f"{what}: it is kept as a change of another's login")


def record_root(connection: Connection, kind: Kind, *, dataset: str = "", round_id: str = "") -> bytes:
    """Return the root of the newest record of a kind, of a round or a dataset. Raises `DataLoss` without one.

    Args:
        connection: to the store.
        kind: of the record.
        dataset: its name, where the record is of one.
        round_id: the round, where the record is of one.
    """
    root = find_root(connection, kind, dataset=dataset, round_id=round_id)
    if root is None:
        raise DataLoss(f"there is no {kind} record of {round_id or dataset}")
    return root


def find_root(connection: Connection, kind: Kind, *, dataset: str = "", round_id: str = "") -> bytes | None:
    """Return the same root as `record_root`, or None if there is no such record.

    Args:
        connection: to the store.
        kind: of the record.
        dataset: its name, where the record is of one.
        round_id: the round, where the record is of one.
    """
    of_subject = records.c.round_id == round_id if round_id else records.c.dataset == dataset
    query = select(records.c.root).where(of_subject, records.c.kind == kind.value)
    return connection.execute(query.order_by(records.c.position.desc()).limit(1)).scalar_one_or_none()
