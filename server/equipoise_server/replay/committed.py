"""What a round has on record: its items, opened, and the roots that bind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from equipoise.errors import VerificationFailed, WrongState
from equipoise.records.items import LAYOUTS, Layout, read_item
from equipoise.records.merkle import root_of
from equipoise.records.record import Kind, item_hash, leaf_bytes
from equipoise_server.replay.differences import same
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.storage.tables import record_items, records

NO_RECORD = "a step of the round is not on record; it cannot be compared with anything"

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Committed:
    """A released round's items, by name, and those of its shares by analyst; `roots` by the kind of record.

    `workloads` and `results` lack analysts who were deleted, with all that was recorded about them.
    """

    roots: Mapping[Kind, bytes]
    dataset: Fields
    data: Fields
    round: Fields
    plan: Fields
    seal: Fields
    release: Fields
    spending: Fields
    workloads: Mapping[str, Fields]
    results: Mapping[str, Fields]


def read_committed(connection: Connection, released: RoundRecord) -> Committed:
    """The records of a round and of its dataset, each checked against its root and bound to the one before.

    Raises `Differs`, `VerificationFailed` for items that cannot be read, `WrongState` where there are no records.
    """
    names = [share.analyst for share in released.terms.shares]
    dataset = _opened(connection, Kind.DATASET_REGISTERED, dataset=released.terms.dataset)
    opened = _opened(connection, Kind.ROUND_OPENED, round_id=released.id)
    sealed = _opened(connection, Kind.ROUND_SEALED, round_id=released.id)
    ended = _opened(connection, Kind.ROUND_RELEASED, round_id=released.id)
    found = Committed(
        roots={
            Kind.DATASET_REGISTERED: dataset.root,
            Kind.ROUND_OPENED: opened.root,
            Kind.ROUND_SEALED: sealed.root,
            Kind.ROUND_RELEASED: ended.root,
        },
        dataset=dataset.one("dataset"),
        data=dataset.one("data"),
        round=opened.one("round"),
        plan=opened.one("plan"),
        seal=sealed.one("seal"),
        release=ended.one("release"),
        spending=ended.one("spending"),
        workloads=sealed.of_shares(names),
        results=ended.of_shares(names),
    )
    same("the round's dataset_root", found.round["dataset_root"], dataset.root.hex())
    same("the seal's opened_root", found.seal["opened_root"], opened.root.hex())
    same("the release's sealed_root", found.release["sealed_root"], sealed.root.hex())
    return found


@dataclass(frozen=True)
class _Opened:
    """One record: its root, and its items' contents in order; None where one was removed, or fills up."""

    layout: Layout
    root: bytes
    contents: tuple[bytes | None, ...]

    def one(self, name: str) -> Fields:
        place = self.layout.first.index(name)
        content = self.contents[place] if place < len(self.contents) else None
        if content is None:
            raise VerificationFailed(f"the item {name} is missing from its record")
        return read_item(content, name)

    def of_shares(self, analysts: list[str]) -> Mapping[str, Fields]:
        """The items of all shares, by analyst."""
        name = self.layout.each
        told: dict[str, Fields] = {}
        for place, analyst in enumerate(analysts, start=len(self.layout.first)):
            content = self.contents[place] if place < len(self.contents) else None
            if content is not None:
                told[analyst] = read_item(content, name)
                same(f"the item {name}'s analyst", told[analyst]["analyst"], analyst)
        return told


def _opened(connection: Connection, kind: Kind, *, dataset: str = "", round_id: str = "") -> _Opened:
    mine = records.c.round_id == round_id if round_id else records.c.dataset == dataset
    query = select(records).where(mine, records.c.kind == kind.value).order_by(records.c.position.desc())
    record = connection.execute(query.limit(1)).first()
    if record is None:
        raise WrongState(NO_RECORD)
    items = select(record_items).where(record_items.c.record == record.position).order_by(record_items.c.place)
    rows = connection.execute(items).all()
    hashes = [row.hash for row in rows]
    for row in rows:
        if row.content is not None:
            what = f"the hash of item {row.place} of the {kind} record"
            same(what, row.hash, item_hash(row.salt, row.content))
    same(f"the root of the {kind} record", record.root, root_of(hashes))
    same(f"the leaf of the {kind} record", record.leaf, leaf_bytes(kind, record.root, len(hashes)))
    return _Opened(LAYOUTS[kind], record.root, tuple(row.content for row in rows))
