"""What a round's records say to one of its analysts, once they are proven to be the log's.

A round has a record of each step, and each names the root of the one before it. Of every record the analyst is
given the items that speak to all of the round, and its own.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.accounting import Cost
from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.model.rounds import Share
from equipoise.queries.schema import Schema
from equipoise.records.canonical import canonical_json
from equipoise.records.evidence import Evidence, OpenedRecord
from equipoise.records.items import LAYOUTS, read_cost, read_item
from equipoise.records.merkle import leaf_hash, verify_inclusion
from equipoise.records.record import Kind, item_hash, read_leaf
from equipoise.records.signed_notes import Checkpoint

STEPS = (
    (Kind.DATASET_REGISTERED, Kind.ROUND_OPENED, Kind.ROUND_SEALED, Kind.ROUND_RELEASED),
    (Kind.DATASET_REGISTERED, Kind.ROUND_OPENED, Kind.ROUND_SEALED, Kind.ROUND_ABORTED),
    (Kind.DATASET_REGISTERED, Kind.ROUND_OPENED, Kind.ROUND_ABORTED),
)
# In which item, and under which name, a record names the root of the one before it.
LINKS = {
    Kind.ROUND_OPENED: "dataset_root",
    Kind.ROUND_SEALED: "opened_root",
    Kind.ROUND_RELEASED: "sealed_root",
    Kind.ROUND_ABORTED: "previous_root",
}

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class ProvenRound:
    """The items, by their names: those that speak to all, `dataset`, `round`, `seal`, `release` or `abort`; the
    analyst's own, `share`, `workload`, `result` or `charge`. What a round did not come to is None. `place`: which
    of the shares is the analyst's, in their order, from 0.
    """

    dataset: Fields
    round: Fields
    share: Fields
    seal: Fields | None
    workload: Fields | None
    release: Fields | None
    result: Fields | None
    abort: Fields | None
    charge: Fields | None
    schema: Schema
    place: int

    @property
    def own_share(self) -> Share:
        """What the analyst may ask."""
        names = ("statements", "queries", "sensitivity", "support")
        return Share(self.share["analyst"], *(self.share[name] for name in names))

    @property
    def commitment(self) -> str | None:
        """To the workload that was sealed, in hexadecimal; None: none was, or the round was not sealed."""
        return None if self.workload is None else self.workload["commitment"]

    @property
    def session(self) -> Fields | None:
        """What makes the round a session; None where it is none."""
        return self.round.get("session")

    @property
    def announced_cost(self) -> Cost | None:
        """What the round was to cost each analyst; None where it does not protect them."""
        cost = self.round["analyst_cost"]
        return None if cost is None else read_cost(cost)

    @property
    def announced_parts(self) -> str:
        """What that is made of, as `accounting.parts_from_json` reads it."""
        return canonical_json(self.round["analyst_events"]).decode()


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
    """What the items say. Raises `VerificationFailed` unless they are all that one round has for one analyst."""
    leaves = [read_leaf(record.leaf, "a leaf") for record in evidence.records]
    kinds = tuple(leaf.kind for leaf in leaves)
    if kinds not in STEPS:
        raise VerificationFailed(f"these are not the steps of a round: {', '.join(kinds) or 'none'}")
    found: dict[str, Fields] = {}
    places: set[int] = set()
    for record, kind in zip(evidence.records, kinds, strict=True):
        # What speaks to all, and what is about one share; between them stands what only auditors may open.
        layout = LAYOUTS[kind]
        names = [layout.first[0], *filter(None, [layout.each])]
        if len(record.items) != len(names):
            raise VerificationFailed(f"{kind}: {len(record.items)} items are opened where {len(names)} must be")
        for item, name in zip(record.items, names, strict=True):
            found[name] = read_item(item.content, name)
        if record.items[0].position != 0:
            raise VerificationFailed(f"{kind}: what speaks to all is not at the first place")
        places.update(item.position - len(layout.first) for item in record.items[1:])
    if len(places) != 1 or min(places) < 0:
        raise VerificationFailed("the analyst's items are not at the place of one and the same share")
    for before, leaf in itertools.pairwise(leaves):
        if found[LAYOUTS[leaf.kind].first[0]][LINKS[leaf.kind]] != before.root.hex():
            raise VerificationFailed(f"{leaf.kind} does not follow this {before.kind}")
    _check_names(found, evidence)
    names = [each.name for each in dataclasses.fields(ProvenRound) if each.name not in ("schema", "place")]
    return ProvenRound(
        schema=_schema(found["dataset"]["schema"]),
        place=min(places),
        **{name: found.get(name) for name in names},  # type: ignore[arg-type]
    )


def _check_names(found: Mapping[str, Fields], evidence: Evidence) -> None:
    for name, fields in found.items():
        for what, expected in (("round", evidence.round_id), ("analyst", evidence.analyst)):
            if fields.get(what, expected) != expected:
                raise VerificationFailed(f"the item {name} is of the {what} {fields[what]}, not {expected}")
    dataset, shown = found["dataset"], found["round"]
    for what, one, other in (
        ("dataset", dataset["dataset"], shown["dataset"]),
        ("number of records", dataset["records"], shown["records"]),
        ("size of the universe", _schema(dataset["schema"]).universe_size, shown["universe_size"]),
    ):
        if one != other:
            raise VerificationFailed(f"dataset and round do not agree on the {what}: {one} and {other}")


def _schema(document: Fields) -> Schema:
    try:
        return Schema.from_json(json.dumps(document))
    except InvalidArgument as error:
        raise VerificationFailed(f"the dataset's {error.message}") from None
