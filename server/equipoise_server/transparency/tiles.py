"""A log's tree in tiles, as C2SP's tlog-tiles has them: rows of up to 256 hashes, of which most never change.

Tile `number` of `level` holds the hashes numbered `256 * number` and on among those of the complete subtrees of
256 ** level leaves. A subtree's hash is in the tile of its own level; the seven heights of subtrees between two
levels are computed from one tile. So the tree grows by changing the last tile of each level only, and the root of
any range of leaves that a proof names is found from one tile for each of the range's complete subtrees.

This module does not know where tiles are stored. `height` is the binary logarithm of a tile's width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from equipoise.errors import DataLoss
from equipoise.records.merkle import (
    EMPTY_ROOT,
    HASH_BYTES,
    consistency_ranges,
    inclusion_ranges,
    node_hash,
    root_of,
)

HEIGHT = 8

Place = tuple[int, int]  # of a tile: level and number
Tiles = Callable[[Place], bytes]  # the hashes of a tile that is there, one after the other


def grown(tiles: Tiles, size: int, hashes: Sequence[bytes], height: int = HEIGHT) -> dict[Place, bytes]:
    """Return the tiles that change when leaves are appended to a tree. All other tiles stay as they are.

    Args:
        tiles: reads a tile of the tree as it is.
        size: how many leaves the tree has.
        hashes: the hashes of the new leaves, in order.
        height: of a tile.

    Raises:
        DataLoss: an existing tile does not have the length that `size` implies.
    """
    changed: dict[Place, bytes] = {}
    level, added = 0, list(hashes)
    while added:
        number, filled = divmod(size >> height * level, 1 << height)
        row = _split(tiles((level, number))) if filled else []
        if len(row) != filled:
            raise DataLoss(f"the log is damaged: tile {number} of level {level} does not end where it did")
        row += added
        added = []
        for begin in range(0, len(row), 1 << height):
            tile = row[begin : begin + (1 << height)]
            changed[level, number] = b"".join(tile)
            number += 1
            if len(tile) == 1 << height:
                added.append(root_of(tile))
        level += 1
    return changed


def root(tiles: Tiles, size: int, height: int = HEIGHT) -> bytes:
    """Return the root of the tree over the first `size` leaves.

    Args:
        tiles: gives the hashes of a tile.
        size: how many leaves there are.
        height: of a tile, in levels.
    """
    return _range_root(tiles, 0, size, height) if size else EMPTY_ROOT


def inclusion(tiles: Tiles, index: int, size: int, height: int = HEIGHT) -> list[bytes]:
    """Return the proof that leaf `index` is in the tree over the first `size` leaves (RFC 6962 section 2.1.1).

    Args:
        tiles: gives the hashes of a tile.
        index: of the leaf, from 0.
        size: how many leaves there are.
        height: of a tile, in levels.
    """
    return [_range_root(tiles, begin, end, height) for begin, end in inclusion_ranges(index, size)]


def consistency(tiles: Tiles, old_size: int, new_size: int, height: int = HEIGHT) -> list[bytes]:
    """Return the proof that the tree of the new size begins with that of the old one (RFC 6962 section 2.1.2).

    Args:
        tiles: gives the hashes of a tile.
        old_size: how many leaves the old tree has.
        new_size: how many the new one has.
        height: of a tile, in levels.
    """
    return [_range_root(tiles, begin, end, height) for begin, end in consistency_ranges(old_size, new_size)]


def widths(size: int, height: int = HEIGHT) -> dict[Place, int]:
    """Return every tile of a tree of `size` leaves, and the number of hashes in each.

    Args:
        size: how many leaves there are.
        height: of a tile, in levels.
    """
    width_of: dict[Place, int] = {}
    level, count = 0, size
    while count:
        full, rest = divmod(count, 1 << height)
        width_of.update({(level, number): 1 << height for number in range(full)})
        if rest:
            width_of[level, full] = rest
        level, count = level + 1, full
    return width_of


def _range_root(tiles: Tiles, begin: int, end: int, height: int) -> bytes:
    """Return the root over leaves [begin, end). `begin` is a multiple of the least power of two >= end - begin."""
    middle = begin + (1 << (end - begin).bit_length() - 1)
    left = _subtree(tiles, begin, middle, height)
    return left if middle == end else node_hash(left, _range_root(tiles, middle, end, height))


def _subtree(tiles: Tiles, begin: int, end: int, height: int) -> bytes:
    """Return the root of a complete subtree."""
    level, spread = divmod((end - begin).bit_length() - 1, height)
    number, first = divmod(begin >> height * level, 1 << height)
    hashes = _split(tiles((level, number)))[first : first + (1 << spread)]
    if len(hashes) != 1 << spread:
        raise DataLoss(f"the log is damaged: tile {number} of level {level} is shorter than it was")
    return root_of(hashes)


def _split(tile: bytes) -> list[bytes]:
    return [tile[start : start + HASH_BYTES] for start in range(0, len(tile), HASH_BYTES)]
