"""The one reader of a whole record: each item opened to its hash, all hashes to the root, the root in the leaf.

The log's views, the server's own checks, a replay and an audit read records by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from equipoise.errors import VerificationFailed
from equipoise.model.log import ItemOpening
from equipoise.records.merkle import HASH_BYTES, root_of
from equipoise.records.record import Kind, Leaf, item_hash, padded_size, read_leaf
from equipoise.records.record_layouts import LAYOUTS, NAMES, OF_ANALYSTS, read_item

AnyItem = TypeVar("AnyItem")


@dataclass(frozen=True)
class ReadRecord:
    """A record whose items were read. Of an analyst who was deleted None stands for an item."""

    kind: Kind
    root: bytes
    items: tuple[object | None, ...]

    def has(self, cls: type) -> bool:
        """Returns whether an item of this class is at the record's beginning."""
        return cls in LAYOUTS[self.kind].first

    def one(self, cls: type[AnyItem]) -> AnyItem:
        """Returns the item of this class at the record's beginning, which its kind must have."""
        item = self.items[LAYOUTS[self.kind].first.index(cls)]
        assert isinstance(item, cls)
        return item

    def each(self, cls: type[AnyItem]) -> tuple[AnyItem | None, ...]:
        """The further items, all of this class, in their order; empty for a kind whose further items are others."""
        layout = LAYOUTS[self.kind]
        if layout.each is not cls:
            return ()
        return tuple(item if isinstance(item, cls) else None for item in self.items[len(layout.first) :])


def open_record(leaf: bytes, items: Sequence[ItemOpening], padding: Sequence[bytes], what: str) -> ReadRecord:
    """Read a record.

    Args:
        leaf: The record's leaf in the log.
        items: Its items, each with content and salt or, if it is not shown, with its hash alone.
        padding: The hashes that hide how many items there are.
        what: Names the record in errors.

    Raises:
        VerificationFailed: An item does not open to its hash, the hashes do not lead to the leaf's root, or the
            items are not those of such a record.
    """
    read = check_hashes(leaf, items, padding, what)
    layout = LAYOUTS[read.kind]
    if len(items) < len(layout.first) or (layout.each is None and len(items) > len(layout.first)):
        raise VerificationFailed(f"{what} has {len(items)} items")
    classes = [*layout.first, *[layout.each] * (len(items) - len(layout.first))]
    opened = [_read_opening(item, cls, what) for item, cls in zip(items, classes, strict=True) if cls is not None]
    return ReadRecord(read.kind, read.root, tuple(opened))


def check_hashes(leaf: bytes, items: Sequence[ItemOpening], padding: Sequence[bytes], what: str) -> Leaf:
    """Checks that items hash to the root in a leaf. The items may be of any form.

    Args:
        leaf: its exact bytes.
        items: those of the record, in order. One without content and salt counts by its hash alone.
        padding: the hashes that fill the record up.
        what: what errors call the record.

    Returns:
        What the leaf says.

    Raises:
        VerificationFailed: they do not, or an item does not open to its hash.
    """
    read = read_leaf(leaf, what)
    hashes = [*(item.hash for item in items), *padding]
    if any(len(each) != HASH_BYTES for each in hashes) or len(set(hashes)) != len(hashes):
        raise VerificationFailed(f"{what} has an item twice, or something that is not a hash")
    for place, item in enumerate(items):
        if (item.content or item.salt) and not _opens(item):
            raise VerificationFailed(f"{what}: {_called(read.kind, place)} does not open to its hash")
    if root_of(hashes) != read.root or not len(hashes) == read.size == padded_size(len(items)):
        raise VerificationFailed(f"{what} is not what its record's items hash to")
    return read


def _opens(item: ItemOpening) -> bool:
    try:
        return item_hash(item.salt, item.content) == item.hash
    except ValueError:
        return False


def _called(kind: Kind, place: int) -> str:
    first, each = LAYOUTS[kind].first, LAYOUTS[kind].each
    cls = first[place] if place < len(first) else each
    return f"item {place}" if cls is None else f"the item {NAMES[cls]}"


def _read_opening(item: ItemOpening, cls: type, what: str) -> object | None:
    if not item.content and not item.salt:
        if cls in OF_ANALYSTS:
            return None
        raise VerificationFailed(f"{what}: the item {NAMES[cls]} does not open to its hash")
    try:
        read: object = read_item(item.content, cls)
    except VerificationFailed as error:
        raise VerificationFailed(f"{what}: {error.message}") from None
    return read
