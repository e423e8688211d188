"""The log in the store: the leaves in their order, their tree in tiles, and the signed checkpoints.

Trust: readers check everything that the log shows. Whoever can write the store can write another log, but that log
will not be consistent with any checkpoint that a reader has kept.

The log shows only what a signed checkpoint covers. A size is signed only after the guard knows it (`sequencing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from equipoise.errors import DataLoss, OutOfRange, VerificationFailed
from equipoise.records.merkle import leaf_hash
from equipoise.records.signed_notes import claimed
from equipoise_server.storage import tree_heads
from equipoise_server.storage.tables.transparency import checkpoints, log_tiles, records
from equipoise_server.storage.tree_heads import TreeHead
from equipoise_server.transparency import tiles
from equipoise_server.transparency.tiles import Place, Tiles

PAGE = 1000


@dataclass(frozen=True)
class Entry:
    """A leaf of the log, and its index."""

    index: int
    leaf: bytes


@dataclass(frozen=True)
class SignedHead:
    """A signed checkpoint: the note's exact bytes, and the size and root that the note states."""

    size: int
    root: bytes
    note: bytes


def append(connection: Connection, leaves: Sequence[bytes]) -> TreeHead:
    """Add leaves, in a transaction that writes, and return the log's new size and root.

    The size is the primary key of the checkpoints: if another server comes to the same size, only one root is
    stored.

    Raises:
        DataLoss: the stored tiles do not have the stored root.
    """
    old, read = tree_heads.newest(connection), stored_tiles(connection)
    if tiles.root(read, old.size) != old.root:
        raise DataLoss(f"the log is damaged: its tiles do not give its root at size {old.size}")
    changed = tiles.grown(read, old.size, [leaf_hash(leaf) for leaf in leaves])
    for (level, number), hashes in changed.items():
        here = (log_tiles.c.level == level) & (log_tiles.c.number == number)
        if connection.execute(log_tiles.update().where(here).values(hashes=hashes)).rowcount == 0:
            connection.execute(log_tiles.insert().values(level=level, number=number, hashes=hashes))
    size = old.size + len(leaves)
    head = TreeHead(size, tiles.root(stored_tiles(connection), size))
    connection.execute(checkpoints.insert().values(size=head.size, root=head.root))
    return head


def checkpoint(connection: Connection) -> bytes | None:
    """Return the newest signed checkpoint, as a note; None before the first one."""
    head = signed_head(connection)
    return None if head is None else head.note


def signed_head(connection: Connection, size: int | None = None) -> SignedHead | None:
    """Return the newest signed checkpoint, or the signed checkpoint of one size; None where there is none."""
    query = select(checkpoints).where(checkpoints.c.note.is_not(None))
    if size is not None:
        query = query.where(checkpoints.c.size == size)
    row = connection.execute(query.order_by(checkpoints.c.size.desc()).limit(1)).first()
    return None if row is None else SignedHead(row.size, row.root, row.note)


def inclusion(connection: Connection, index: int, size: int) -> list[bytes]:
    """Return the proof that leaf `index` is in the tree of this size.

    Args:
        connection: to the store.
        index: of the leaf, from 0.
        size: how many leaves the tree has.

    Raises:
        OutOfRange: the tree has no such leaf, or no signed checkpoint covers the size yet.
    """
    if not 0 <= index < size or size > _signed_size(connection):
        raise OutOfRange("the log has no such leaf, or has not come to that size")
    return tiles.inclusion(stored_tiles(connection), index, size)


def consistency(connection: Connection, old_size: int, new_size: int) -> list[bytes]:
    """Return the proof that the tree of the new size begins with the tree of the old size.

    Args:
        connection: to the store.
        old_size: how many leaves the old tree has.
        new_size: how many the new one has.

    Raises:
        OutOfRange: the sizes are in the wrong order, or no signed checkpoint covers the new one yet.
    """
    if not 0 <= old_size <= new_size or new_size > _signed_size(connection):
        raise OutOfRange("the log has not come to that size, or the sizes are in the wrong order")
    return tiles.consistency(stored_tiles(connection), old_size, new_size)


def entries(connection: Connection, after: int, limit: int) -> list[Entry]:
    """Return at most `limit` leaves from index `after` on, as far as the newest signed checkpoint goes."""
    wanted = (records.c.log_index >= after) & (records.c.log_index < _signed_size(connection))
    query = select(records.c.log_index, records.c.leaf).where(wanted).order_by(records.c.log_index).limit(limit)
    return [Entry(row.log_index, row.leaf) for row in connection.execute(query)]


def stored_tiles(connection: Connection) -> Tiles:
    """Return a function that reads tiles from the store, each once, and raises `DataLoss` for a missing tile."""
    known: dict[Place, bytes] = {}

    def read(place: Place) -> bytes:
        if place not in known:
            level, number = place
            here = (log_tiles.c.level == level) & (log_tiles.c.number == number)
            hashes = connection.execute(select(log_tiles.c.hashes).where(here)).scalar_one_or_none()
            if hashes is None:
                raise DataLoss(f"the log is damaged: tile {number} of level {level} is missing")
            known[place] = hashes
        return known[place]

    return read


def check_log(connection: Connection) -> TreeHead:
    """Recompute the whole tree from its leaves, compare every tile and root, and return size and root.

    `Signer.check_checkpoints` verifies the signatures of the checkpoints. Raises `DataLoss` for any difference.
    """
    head = tree_heads.newest(connection)
    computed: dict[Place, bytes] = {}
    size = 0
    for leaves in _pages(connection):
        if leaves[0].index != size or leaves[-1].index != size + len(leaves) - 1:
            raise DataLoss(f"the log is damaged: leaf {size} or one soon after it is missing")
        computed |= tiles.grown(computed.__getitem__, size, [leaf_hash(each.leaf) for each in leaves])
        size += len(leaves)
    if size != head.size:
        raise DataLoss(f"the log is damaged: it has {size} leaves, but had come to {head.size}")
    stored = {(row.level, row.number): row.hashes for row in connection.execute(select(log_tiles))}
    if stored != computed:
        raise DataLoss("the log is damaged: its tiles are not those of its leaves")
    for row in connection.execute(select(checkpoints)):
        if tiles.root(computed.__getitem__, row.size) != row.root:
            raise DataLoss(f"the log is damaged: its leaves do not give its root at size {row.size}")
        if row.note is not None and not _states(row.note, row.size, row.root):
            raise DataLoss(f"the log is damaged: its checkpoint of size {row.size} says something else")
    return head


def _states(note: bytes, size: int, root: bytes) -> bool:
    """Return whether a note states this size and root; signatures are not verified."""
    try:
        claim = claimed(note)
    except VerificationFailed:
        return False
    return (claim.size, claim.root) == (size, root)


def _pages(connection: Connection) -> Iterable[list[Entry]]:
    """Yield every leaf that has an index in the log, in order, page by page."""
    after = 0
    query = select(records.c.log_index, records.c.leaf).order_by(records.c.log_index).limit(PAGE)
    while leaves := connection.execute(query.where(records.c.log_index >= after)).all():
        yield [Entry(row.log_index, row.leaf) for row in leaves]
        after = leaves[-1].log_index + 1


def _signed_size(connection: Connection) -> int:
    head = signed_head(connection)
    return 0 if head is None else head.size
