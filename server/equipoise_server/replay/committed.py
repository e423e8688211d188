"""Reads the records of a round: its opened items, and the roots that bind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import ColumnElement, Connection, select

from equipoise.errors import WrongState
from equipoise.records.dataset_items import DataItem, DatasetItem
from equipoise.records.items import (
    PlanItem,
    ReleaseItem,
    ResultItem,
    RoundItem,
    SealItem,
    SpendingItem,
    WorkloadItem,
)
from equipoise.records.opened_records import ReadRecord, open_record
from equipoise.records.record import Kind
from equipoise_server.replay.differences import same
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.storage.tables.transparency import records
from equipoise_server.transparency.record_writer import stored_openings

NO_RECORD = "a step of the round is not on record; it cannot be compared with anything"

OfShare = TypeVar("OfShare", WorkloadItem, ResultItem)


@dataclass(frozen=True)
class Committed:
    """A released round's items, and those of its shares by analyst; `roots` by the kind of record.

    `workloads` and `results` lack analysts who were deleted, with all that was recorded about them.
    """

    roots: Mapping[Kind, bytes]
    dataset: DatasetItem
    data: DataItem
    round: RoundItem
    plan: PlanItem
    seal: SealItem
    release: ReleaseItem
    spending: SpendingItem
    workloads: Mapping[str, WorkloadItem]
    results: Mapping[str, ResultItem]


def read_committed(connection: Connection, released: RoundRecord) -> Committed:
    """Return the records of a round and of its dataset, each checked against its root and bound to the one before.

    Raises `Differs`, `VerificationFailed` for records that are not what their leaves commit to, `WrongState`
    where there are none.
    """
    names = [share.analyst for share in released.terms.shares]
    opened, sealed, ended = (
        _opened(connection, kind, records.c.round_id == released.id)
        for kind in (Kind.ROUND_OPENED, Kind.ROUND_SEALED, Kind.ROUND_RELEASED)
    )
    # Of the versions of the dataset, the one whose record the round's opening names.
    named = records.c.root == opened.one(RoundItem).dataset_root
    of_dataset = records.c.dataset == released.terms.dataset
    dataset = _opened(connection, Kind.DATASET_REGISTERED, of_dataset & named)
    committed = Committed(
        roots={record.kind: record.root for record in (dataset, opened, sealed, ended)},
        dataset=dataset.one(DatasetItem),
        data=dataset.one(DataItem),
        round=opened.one(RoundItem),
        plan=opened.one(PlanItem),
        seal=sealed.one(SealItem),
        release=ended.one(ReleaseItem),
        spending=ended.one(SpendingItem),
        workloads=_by_analyst(sealed.each(WorkloadItem), names),
        results=_by_analyst(ended.each(ResultItem), names),
    )
    same("the version of the dataset", committed.round.dataset_version, committed.dataset.version)
    same("the seal's opened_root", committed.seal.opened_root, opened.root)
    same("the release's sealed_root", committed.release.sealed_root, sealed.root)
    return committed


def _by_analyst(items: tuple[OfShare | None, ...], analysts: list[str]) -> Mapping[str, OfShare]:
    same("the number of items of shares", len(items), len(analysts))
    for item, analyst in zip(items, analysts, strict=True):
        if item is not None:
            same("an item's analyst", item.analyst, analyst)
    return {item.analyst: item for item in items if item is not None}


def _opened(connection: Connection, kind: Kind, which: ColumnElement[bool]) -> ReadRecord:
    query = select(records).where(which, records.c.kind == kind.value).order_by(records.c.position.desc())
    record = connection.execute(query.limit(1)).first()
    if record is None:
        raise WrongState(NO_RECORD)
    what = f"the {kind} record"
    read = open_record(record.leaf, *stored_openings(connection, record.position), what)
    same(f"the root of {what}", record.root, read.root)
    same(f"the kind of {what}", read.kind, kind)
    return read
