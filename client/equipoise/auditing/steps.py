"""Records as steps: opened item by item, and each item read as what its place in the record says it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.errors import VerificationFailed
from equipoise.model.log import ItemOpening, RecordOpening
from equipoise.records.items import LAYOUTS, read_item
from equipoise.records.merkle import HASH_BYTES, root_of
from equipoise.records.record import Kind, item_hash, padded_size, read_leaf

Fields = Mapping[str, Any]

OF_ANALYSTS = ("share", "workload", "result", "charge")  # may be removed together with the analyst


@dataclass(frozen=True)
class Step:
    """A record that was opened: the fields of its first items by name, and of the further ones in their order.

    Of an analyst who was deleted only the hash is left, and None stands for the fields.
    """

    index: int
    kind: Kind
    root: bytes
    first: Mapping[str, Fields]
    further: tuple[Fields | None, ...]

    def __str__(self) -> str:
        return f"entry {self.index} of the log ({self.kind})"


def open_steps(records: Iterable[RecordOpening], leaves: tuple[bytes, ...]) -> tuple[Step, ...]:
    """The step behind each leaf. Raises `VerificationFailed` naming the first record that is not its leaf's."""
    steps: list[Step] = []
    for record in records:
        if record.index != len(steps) or record.index >= len(leaves):
            raise VerificationFailed(f"entry {len(steps)} of the log has no record, or two")
        if record.leaf != leaves[record.index]:
            raise VerificationFailed(f"entry {record.index} of the log is not the leaf of its record")
        steps.append(open_step(record))
    if len(steps) != len(leaves):
        raise VerificationFailed(f"entry {len(steps)} of the log has no record")
    return tuple(steps)


def open_step(record: RecordOpening) -> Step:
    """A record's items, every one of which must open to its hash, and all hashes to the root in the leaf."""
    what = f"entry {record.index} of the log"
    leaf = read_leaf(record.leaf, what)
    hashes = [*(item.hash for item in record.items), *record.padding]
    if any(len(each) != HASH_BYTES for each in hashes) or len(set(hashes)) != len(hashes):
        raise VerificationFailed(f"{what} has an item twice, or a hash that is none")
    root = root_of(hashes)
    if root != leaf.root or not len(hashes) == leaf.size == padded_size(len(record.items)):
        raise VerificationFailed(f"{what} is not what its record's items hash to")
    layout = LAYOUTS[leaf.kind]
    names = layout.first
    if len(record.items) < len(names) or (not layout.each and len(record.items) > len(names)):
        raise VerificationFailed(f"{what} has {len(record.items)} items")
    return Step(
        record.index,
        leaf.kind,
        root,
        {name: _opened(item, name, what) for name, item in zip(names, record.items, strict=False)},
        tuple(_of_analyst(item, layout.each, what) for item in record.items[len(names) :]),
    )


def _of_analyst(item: ItemOpening, name: str, what: str) -> Fields | None:
    if name in OF_ANALYSTS and not item.content and not item.salt:
        return None
    return _opened(item, name, what)


def _opened(item: ItemOpening, name: str, what: str) -> Fields:
    try:
        opens = item_hash(item.salt, item.content) == item.hash
    except ValueError:
        opens = False
    if not opens:
        raise VerificationFailed(f"{what}: the item {name} does not open to its hash")
    try:
        return read_item(item.content, name)
    except VerificationFailed as error:
        raise VerificationFailed(f"{what}: {error.message}") from None
