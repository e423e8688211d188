"""The deployment's public keys: the log's keys, which sign, and the auditors' keys, to which seeds are sealed.

Every key that is added or retired enters the log. During rotation every active log key signs, and seeds are sealed
to every active auditor key, so nobody loses access.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from equipoise.errors import AlreadyExists, DataLoss, NotFound, WrongState
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise.records.log_items import KeyItem, StartItem
from equipoise.records.record import Audience, Item, Kind, key_id
from equipoise.records.record_layouts import make_item, read_item
from equipoise_server.storage.tables.transparency import keys, record_items, records
from equipoise_server.transparency.record_writer import journal_head, record

# Built once, because every receipt needs the keys in force.
_KEYS = select(keys).where(keys.c.purpose == bindparam("purpose")).order_by(keys.c.added, keys.c.id)

# Every change of a key, which auditors and analysts see. These records have no round: the condition uses the index
# on rounds, as nearly all records have one.
_CHANGES = (
    select(records.c.log_index, records.c.kind, record_items.c.content)
    .join(record_items, record_items.c.record == records.c.position)
    .where(
        records.c.round_id == "",
        records.c.kind.in_([kind.value for kind in (Kind.LOG_STARTED, Kind.KEY_ADDED, Kind.KEY_RETIRED)]),
        record_items.c.audience == Audience.ROUND.value,
    )
)


class Purpose(StrEnum):
    """The purpose of a key."""

    LOG = "log"  # Ed25519: signs checkpoints and receipts
    AUDITOR = "auditor"  # X25519: seeds are sealed to it


@dataclass(frozen=True)
class PublicKey:
    """A key's public part, 32 bytes, and the times when it was added and retired."""

    purpose: Purpose
    public: bytes
    added: datetime
    retired: datetime | None = None

    @property
    def id(self) -> str:
        """The identifier by which file names and people distinguish keys."""
        return key_id(self.public)


def all_keys(connection: Connection, purpose: Purpose) -> list[PublicKey]:
    """Return every key that was ever in force, oldest first."""
    return [_key(row) for row in connection.execute(_KEYS, {"purpose": purpose.value})]


def in_force(connection: Connection, purpose: Purpose) -> list[PublicKey]:
    """Return the keys that now sign, or that seeds are now sealed to, oldest first."""
    return [key for key in all_keys(connection, purpose) if key.retired is None]


def in_force_at(connection: Connection, purpose: Purpose, size: int) -> list[PublicKey]:
    """Return the keys in force after the first `size` entries of the log, in the order of their records."""
    standing: dict[str, PublicKey] = {}
    for index, is_retired, key in key_events(connection, purpose):
        if index >= size:
            break
        if is_retired:
            standing.pop(key.id, None)
        else:
            standing[key.id] = key
    return list(standing.values())


def key_events(connection: Connection, purpose: Purpose) -> list[tuple[int, bool, PublicKey]]:
    """Return every addition and retirement of a key in the log: the entry's index, True if retired, and the key."""
    logged = _CHANGES.where(records.c.log_index.is_not(None))
    rows = connection.execute(logged.order_by(records.c.log_index, record_items.c.place))
    items = [(row, read_item(row.content, KeyItem)) for row in rows]
    return [
        (
            row.log_index,
            row.kind == Kind.KEY_RETIRED.value,
            PublicKey(purpose, item.public, from_microseconds(item.time)),
        )
        for row, item in items
        if item.purpose == purpose.value
    ]


def check_keys(connection: Connection) -> None:
    """Raise `DataLoss`, naming the key, unless the stored keys are those that records have added and retired."""
    recorded: dict[str, dict[str, object]] = {}
    for row in connection.execute(_CHANGES.order_by(records.c.position, record_items.c.place)):
        item = read_item(row.content, KeyItem)
        if row.kind == Kind.KEY_RETIRED.value:
            recorded[key_id(item.public)]["retired"] = item.time
        else:
            of_key = {"purpose": item.purpose, "public": item.public, "added": item.time, "retired": None}
            recorded[key_id(item.public)] = of_key
    stored = {row["id"]: dict(row) for row in connection.execute(select(keys)).mappings()}
    for name in sorted(stored.keys() | recorded.keys()):
        if stored.get(name) != {"id": name, **recorded.get(name, {})}:
            raise DataLoss(f"the key {name}: what is stored is not what is on record")


def is_started(connection: Connection) -> bool:
    """Return whether the log has its first record."""
    return connection.execute(select(records.c.position).limit(1)).first() is not None


def start_log(connection: Connection, first: Sequence[PublicKey], now: datetime) -> None:
    """Write the log's first record, with the keys that are in force from now on. Raises `WrongState`.

    The caller must do this before anything else is recorded.
    """
    if is_started(connection):
        raise WrongState("the log has begun already")
    for key in first:
        _insert(connection, key)
    start = make_item(StartItem(journal_head(connection), to_microseconds(now)), Audience.AUDITOR)
    record(connection, Kind.LOG_STARTED, [start, *(_item(key, key.added) for key in first)], now=now)


def add(connection: Connection, key: PublicKey) -> None:
    """Put a key in force until it is retired. Raises `AlreadyExists` for a key that was ever in force."""
    _insert(connection, key)
    record(connection, Kind.KEY_ADDED, [_item(key, key.added)], now=key.added)


def retire(connection: Connection, purpose: Purpose, key_id: str, now: datetime) -> None:
    """Retire a key.

    Raises:
        NotFound: no such key is in force.
        WrongState: the key is the log's only one, so that nothing could be signed without it.
    """
    standing = {key.id: key for key in in_force(connection, purpose)}
    if key_id not in standing:
        raise NotFound(f"there is no {purpose} key {key_id} in force")
    if purpose is Purpose.LOG and len(standing) == 1:
        raise WrongState("this is the log's only key; add another first")
    _retire(connection, standing[key_id], now)


def replace_log_keys(connection: Connection, key: PublicKey) -> None:
    """Retire every key of the log, and put this new key in force instead. It must not have signed anything yet."""
    standing = in_force(connection, Purpose.LOG)
    add(connection, key)
    for old in standing:
        _retire(connection, old, key.added)


def _retire(connection: Connection, key: PublicKey, now: datetime) -> None:
    connection.execute(keys.update().where(keys.c.id == key.id).values(retired=to_microseconds(now)))
    record(connection, Kind.KEY_RETIRED, [_item(key, now)], now=now)


def _insert(connection: Connection, key: PublicKey) -> None:
    if connection.execute(select(keys.c.id).where(keys.c.id == key.id)).first() is not None:
        raise AlreadyExists(f"the key {key.id} is known already; a key is used once")
    connection.execute(
        keys.insert().values(
            id=key.id, purpose=key.purpose.value, public=key.public, added=to_microseconds(key.added)
        )
    )


def _item(key: PublicKey, time: datetime) -> Item:
    item = KeyItem(key.purpose.value, key.public, bytes.fromhex(key.id), to_microseconds(time))
    return make_item(item, Audience.ROUND)


def _key(row: Row[Any]) -> PublicKey:
    retired = None if row.retired is None else from_microseconds(row.retired)
    return PublicKey(Purpose(row.purpose), row.public, from_microseconds(row.added), retired)
