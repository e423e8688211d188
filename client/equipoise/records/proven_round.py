"""What a round's records say to one of its analysts, once they are proven to be the log's.

A round has a record of each step, and each names the root of the one before it. Of every record the analyst is
given the items that speak to all of the round, and its own.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.queries.schema import Schema
from equipoise.records.canonical import canonical_json
from equipoise.records.dataset_items import DatasetItem
from equipoise.records.evidence import Evidence, OpenedRecord
from equipoise.records.items import (
    AbortItem,
    ChargeItem,
    ReleaseItem,
    ResultItem,
    RoundItem,
    SealItem,
    ShareItem,
    WorkloadItem,
)
from equipoise.records.merkle import leaf_hash, verify_inclusion
from equipoise.records.record import Kind, item_hash, read_leaf
from equipoise.records.record_layouts import LAYOUTS, NAMES, read_item
from equipoise.records.signed_notes import Checkpoint

STEPS = (
    (Kind.DATASET_REGISTERED, Kind.ROUND_OPENED, Kind.ROUND_SEALED, Kind.ROUND_RELEASED),
    (Kind.DATASET_REGISTERED, Kind.ROUND_OPENED, Kind.ROUND_SEALED, Kind.ROUND_ABORTED),
    (Kind.DATASET_REGISTERED, Kind.ROUND_OPENED, Kind.ROUND_ABORTED),
)
Found = dict[type, Any]  # items by their classes


@dataclass(frozen=True)
class ProvenRound:
    """The items of a round, by their names.

    `dataset`, `round`, `seal`, `release` or `abort` are for all; `share`, `workload`, `result` or `charge` are the
    analyst's own. A step that was not reached is None. `opened_root`: of the record of the round's opening;
    `place`: the position of the analyst's share, from 0.
    """

    dataset: DatasetItem
    round: RoundItem
    share: ShareItem
    seal: SealItem | None
    workload: WorkloadItem | None
    release: ReleaseItem | None
    result: ResultItem | None
    abort: AbortItem | None
    charge: ChargeItem | None
    schema: Schema
    opened_root: bytes
    place: int

    @property
    def commitment(self) -> bytes | None:
        """To the workload that was sealed; None: none was, or the round was not sealed."""
        return None if self.workload is None else self.workload.commitment

    @property
    def announced_parts(self) -> str:
        """What that is made of, as `accounting.parts_from_json` reads it."""
        return canonical_json(self.round.analyst_events).decode()


def check_inclusion(records: Sequence[OpenedRecord], checkpoint: Checkpoint) -> None:
    """Raises `VerificationFailed` unless every record's leaf is in the log, one after another."""
    for record in records:
        verify_inclusion(leaf_hash(record.leaf), record.index, checkpoint.size, record.path, checkpoint.root)
    for one, next_one in itertools.pairwise(records):
        if one.index >= next_one.index:
            raise VerificationFailed("the log holds the round's steps in another order")


def check_openings(records: Sequence[OpenedRecord]) -> None:
    """Raises `VerificationFailed` unless every item is in its record, at the place that it says."""
    for record in records:
        leaf = read_leaf(record.leaf, "a leaf")
        for item in record.items:
            try:
                hashed = item_hash(item.salt, item.content)
                verify_inclusion(hashed, item.position, leaf.size, item.path, leaf.root)
            except (ValueError, VerificationFailed) as problem:
                raise VerificationFailed(f"{leaf.kind}, item {item.position}: {problem}") from None


def proven_round(evidence: Evidence) -> ProvenRound:
    """Returns what the items say.

    Raises `VerificationFailed` unless they are all that one round has for one analyst.
    """
    leaves = [read_leaf(record.leaf, "a leaf") for record in evidence.records]
    kinds = tuple(leaf.kind for leaf in leaves)
    if kinds not in STEPS:
        raise VerificationFailed(f"these are not the steps of a round: {', '.join(kinds) or 'none'}")
    opened: Found = {}
    places: set[int] = set()
    for record, kind in zip(evidence.records, kinds, strict=True):
        # What speaks to all, and what is about one share; between them stands what only auditors may open.
        layout = LAYOUTS[kind]
        classes = [layout.first[0], *([] if layout.each is None else [layout.each])]
        if len(record.items) != len(classes):
            raise VerificationFailed(f"{kind}: {len(record.items)} items are opened where {len(classes)} must be")
        for item, cls in zip(record.items, classes, strict=True):
            opened[cls] = read_item(item.content, cls)
        if record.items[0].position != 0:
            raise VerificationFailed(f"{kind}: what speaks to all is not at the first place")
        places.update(item.position - len(layout.first) for item in record.items[1:])
    if len(places) != 1 or min(places) < 0:
        raise VerificationFailed("the analyst's items are not at the place of one and the same share")
    for before, leaf in itertools.pairwise(leaves):
        if _root_before(opened[LAYOUTS[leaf.kind].first[0]]) != before.root:
            raise VerificationFailed(f"{leaf.kind} does not follow this {before.kind}")
    _check_names(opened, evidence)
    return ProvenRound(
        dataset=opened[DatasetItem],
        round=opened[RoundItem],
        share=opened[ShareItem],
        seal=opened.get(SealItem),
        workload=opened.get(WorkloadItem),
        release=opened.get(ReleaseItem),
        result=opened.get(ResultItem),
        abort=opened.get(AbortItem),
        charge=opened.get(ChargeItem),
        schema=_schema(opened[DatasetItem].schema),
        opened_root=leaves[kinds.index(Kind.ROUND_OPENED)].root,
        place=min(places),
    )


def _root_before(item: object) -> bytes | None:
    """Returns the root of the record before it that the first item of a record names."""
    match item:
        case RoundItem():
            return item.dataset_root
        case SealItem():
            return item.opened_root
        case ReleaseItem():
            return item.sealed_root
        case AbortItem():
            return item.previous_root
        case _:
            return None


def _check_names(opened: Found, evidence: Evidence) -> None:
    dataset, shown = opened[DatasetItem], opened[RoundItem]
    persons = dataset.persons
    if dataset.records % persons.records or _schema(dataset.schema).padded != persons.padded:
        raise VerificationFailed(f"the dataset does not have {persons.records:,} records a person")
    for item in opened.values():
        if not isinstance(item, DatasetItem) and item.round_id != evidence.round_id:
            problem = f"is of the round {item.round_id}, not {evidence.round_id}"
            raise VerificationFailed(f"the item {NAMES[type(item)]} {problem}")
        if (
            isinstance(item, ShareItem | WorkloadItem | ResultItem | ChargeItem)
            and item.analyst != evidence.analyst
        ):
            problem = f"is of the analyst {item.analyst}, not {evidence.analyst}"
            raise VerificationFailed(f"the item {NAMES[type(item)]} {problem}")
    for what, one, other in (
        ("dataset", dataset.dataset, shown.dataset),
        ("version of the dataset", dataset.version, shown.dataset_version),
        ("number of records", dataset.records, shown.records),
        ("size of the universe", _schema(dataset.schema).universe_size, shown.universe_size),
    ):
        if one != other:
            raise VerificationFailed(f"dataset and round do not agree on the {what}: {one} and {other}")


def _schema(document: Mapping[str, Any]) -> Schema:
    try:
        return Schema.from_json(json.dumps(dict(document)))
    except InvalidArgument as error:
        raise VerificationFailed(f"the dataset's {error.message}") from None
