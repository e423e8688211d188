"""The tree in tiles: the same roots and proofs as from all leaves, whatever the size, and few tiles read."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from harness.consistency import consistency_path

from equipoise.errors import DataLoss
from equipoise.records.merkle import EMPTY_ROOT, inclusion_path, leaf_hash, root_of
from equipoise_server.transparency import tiles
from equipoise_server.transparency.tiles import Place

SMALL = 2  # four hashes a tile


def leaves(count: int) -> list[bytes]:
    return [leaf_hash(number.to_bytes(4, "big")) for number in range(count)]


def stored(hashes: list[bytes], parts: list[int], height: int) -> dict[Place, bytes]:
    """The tiles after appending parts of these sizes one after the other."""
    kept: dict[Place, bytes] = {}
    size = 0
    for part in parts:
        changed = tiles.grown(kept.__getitem__, size, hashes[size : size + part], height)
        for place, row in changed.items():
            # A tile only ever gets longer, and a full one is left alone.
            assert row.startswith(kept.get(place, b"")), place
            assert len(kept.get(place, b"")) < len(row) <= 32 << height
        kept |= changed
        size += part
    assert {place: len(row) // 32 for place, row in kept.items()} == tiles.widths(size, height)
    return kept


@pytest.mark.parametrize("seed", range(20))
def test_roots_and_proofs_are_those_of_all_leaves(seed: int) -> None:
    draw = random.Random(seed)
    parts = [draw.choice([1, 1, 2, 3, 4, 5, 16, 17, 63, 64]) for _ in range(12)]
    hashes = leaves(sum(parts))
    kept = stored(hashes, parts, SMALL)
    for size in {*range(1, 20), *draw.sample(range(1, len(hashes) + 1), 8), len(hashes)} & {
        *range(len(hashes) + 1)
    }:
        assert tiles.root(kept.__getitem__, size, SMALL) == root_of(hashes[:size])
        for index in {0, size - 1, draw.randrange(size)}:
            assert tiles.inclusion(kept.__getitem__, index, size, SMALL) == inclusion_path(hashes[:size], index)
        for old in {0, 1, size, draw.randrange(size + 1)}:
            assert tiles.consistency(kept.__getitem__, old, size, SMALL) == consistency_path(hashes[:size], old)


@pytest.mark.slow
def test_the_log_s_own_width_across_its_first_three_levels() -> None:
    edges = [255, 256, 257, 65_535, 65_536, 65_537, 65_792, 65_793]
    hashes = leaves(edges[-1])
    parts = [edges[0], *(after - before for before, after in pairwise(edges))]
    kept = stored(hashes, parts, tiles.HEIGHT)
    assert max(level for level, _ in kept) == 2
    for size in edges:
        assert tiles.root(kept.__getitem__, size) == root_of(hashes[:size])
    read: set[Place] = set()

    def reading(place: Place) -> bytes:
        read.add(place)
        return kept[place]

    assert tiles.inclusion(reading, 300, 65_793) == inclusion_path(hashes, 300)
    assert tiles.consistency(reading, 65_536, 65_793) == consistency_path(hashes, 65_536)
    assert len(read) <= 8


def test_the_empty_tree_has_no_tiles() -> None:
    kept: dict[Place, bytes] = {}
    assert tiles.root(kept.__getitem__, 0) == EMPTY_ROOT
    assert tiles.grown(kept.__getitem__, 0, []) == {}
    assert tiles.widths(0) == {}


def test_tiles_that_do_not_end_where_they_should_are_refused() -> None:
    hashes = leaves(7)
    kept = stored(hashes, [7], SMALL)
    longer = {**kept, (0, 1): kept[0, 1] + bytes(32)}
    shorter = {**kept, (0, 1): kept[0, 1][:-32]}
    for damaged in (longer, shorter):
        with pytest.raises(DataLoss, match="tile 1 of level 0 does not end where it did"):
            tiles.grown(damaged.__getitem__, 7, hashes[:1], SMALL)
    with pytest.raises(DataLoss, match="tile 1 of level 0 is shorter"):
        tiles.root(shorter.__getitem__, 7, SMALL)
