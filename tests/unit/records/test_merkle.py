"""RFC 6962 trees against its definitions, for every tree up to a size, and against what must never be accepted."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise

import pytest
from harness.consistency import consistency_path

from equipoise.errors import VerificationFailed
from equipoise.records.merkle import (
    EMPTY_ROOT,
    inclusion_path,
    leaf_hash,
    node_hash,
    root_of,
    verify_consistency,
    verify_inclusion,
)

MAX_LEAVES = 40
LEAVES = [b"leaf %d" % number for number in range(MAX_LEAVES)]
HASHES = [leaf_hash(each) for each in LEAVES]
ROOTS = [root_of(HASHES[:size]) for size in range(MAX_LEAVES + 1)]


def split(size: int) -> int:
    return max(1 << power for power in range(size) if 1 << power < size)


def defined_root(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962 section 2.1."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0]).digest()
    k = split(len(leaves))
    return sha256(b"\1" + defined_root(leaves[:k]) + defined_root(leaves[k:])).digest()


def defined_path(m: int, leaves: list[bytes]) -> list[bytes]:
    """PATH of RFC 6962 section 2.1.1."""
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if m < k:
        return [*defined_path(m, leaves[:k]), defined_root(leaves[k:])]
    return [*defined_path(m - k, leaves[k:]), defined_root(leaves[:k])]


def defined_proof(m: int, leaves: list[bytes], *, known: bool = True) -> list[bytes]:
    """PROOF and SUBPROOF of RFC 6962 section 2.1.2."""
    if m == len(leaves):
        return [] if known else [defined_root(leaves)]
    k = split(len(leaves))
    if m <= k:
        return [*defined_proof(m, leaves[:k], known=known), defined_root(leaves[k:])]
    return [*defined_proof(m - k, leaves[k:], known=False), defined_root(leaves[:k])]


@pytest.mark.slow
def test_every_small_tree_is_the_one_defined() -> None:
    for size in range(MAX_LEAVES + 1):
        leaves = LEAVES[:size]
        assert ROOTS[size] == defined_root(leaves)
        for index in range(size):
            path = inclusion_path(HASHES[:size], index)
            assert path == defined_path(index, leaves)
            verify_inclusion(HASHES[index], index, size, path, ROOTS[size])
        for old in range(1, size + 1):
            path = consistency_path(HASHES[:size], old)
            assert path == defined_proof(old, leaves)
            verify_consistency(old, ROOTS[old], size, ROOTS[size], path)
        assert consistency_path(HASHES[:size], 0) == []
        verify_consistency(0, EMPTY_ROOT, size, ROOTS[size], [])


def test_a_path_shows_one_leaf_in_one_place_of_one_tree() -> None:
    """Whatever holds for another index, size or leaf would be two claims under one proof."""
    for size in range(1, 18):
        for index in range(size):
            path = inclusion_path(HASHES[:size], index)
            for other in range(-1, size + 2):
                if other != index:
                    with pytest.raises(VerificationFailed):
                        verify_inclusion(HASHES[index], other, size, path, ROOTS[size])
            for wrong in {HASHES[(index + 1) % MAX_LEAVES], ROOTS[size], *path} - {HASHES[index]}:
                with pytest.raises(VerificationFailed):
                    verify_inclusion(wrong, index, size, path, ROOTS[size])


def test_a_consistency_proof_joins_two_trees_only() -> None:
    for new in range(1, 18):
        for old in range(new):
            path = consistency_path(HASHES[:new], old)
            for other in range(1, new):
                if other != old:
                    with pytest.raises(VerificationFailed):
                        verify_consistency(other, ROOTS[other], new, ROOTS[new], path)
                    with pytest.raises(VerificationFailed):
                        verify_consistency(old, ROOTS[other], new, ROOTS[new], path)
            with pytest.raises(VerificationFailed):
                verify_consistency(new, ROOTS[new], old, ROOTS[old], path)


def test_proofs_have_exactly_their_length() -> None:
    for size in range(1, 18):
        for index in range(size):
            path = inclusion_path(HASHES[:size], index)
            for wrong in (path[:-1], path[1:], [*path, bytes(32)], [bytes(32), *path], [*path, *path]):
                if wrong != path:
                    with pytest.raises(VerificationFailed):
                        verify_inclusion(HASHES[index], index, size, wrong, ROOTS[size])
            proof = consistency_path(HASHES[:size], index)
            for wrong in (proof[:-1], proof[1:], [*proof, bytes(32)], [bytes(32), *proof], [*proof, ROOTS[index]]):
                if wrong != proof:
                    with pytest.raises(VerificationFailed):
                        verify_consistency(index, ROOTS[index], size, ROOTS[size], wrong)


def test_a_leaf_is_no_node_and_a_node_no_leaf() -> None:
    joined = HASHES[0] + HASHES[1]
    assert leaf_hash(joined) != node_hash(HASHES[0], HASHES[1])
    with pytest.raises(VerificationFailed):  # the node over leaves 0 and 1 as leaf 0 of a tree of half the size
        verify_inclusion(leaf_hash(joined), 0, 2, [node_hash(HASHES[2], HASHES[3])], ROOTS[4])
    root = root_of([leaf_hash(joined), HASHES[2]])
    with pytest.raises(VerificationFailed):  # a leaf whose content is two hashes, opened as if it were a node
        verify_inclusion(HASHES[0], 0, 4, [HASHES[1], HASHES[2]], root)


def test_a_hash_of_another_length_is_refused() -> None:
    """Otherwise bytes could move from one hash of a path to the next."""
    left, right = HASHES[1], node_hash(HASHES[2], HASHES[3])
    for path in ([left[:-1], left[-1:] + right], [left + b"\0", right], [b"", right]):
        with pytest.raises(VerificationFailed, match="32 bytes"):
            verify_inclusion(HASHES[0], 0, 4, path, ROOTS[4])
        with pytest.raises(VerificationFailed, match="32 bytes"):
            verify_consistency(2, ROOTS[2], 8, ROOTS[8], path)


def test_other_histories_are_no_continuation() -> None:
    other = [*HASHES[:3], leaf_hash(b"changed"), *HASHES[4:]]
    for old, new in pairwise(range(4, MAX_LEAVES)):
        with pytest.raises(VerificationFailed, match="is not consistent"):
            verify_consistency(old, ROOTS[old], new, root_of(other[:new]), consistency_path(other[:new], old))
    with pytest.raises(VerificationFailed, match="is not consistent"):  # a fork at one size
        verify_consistency(4, ROOTS[4], 4, root_of(other[:4]), [])
    with pytest.raises(VerificationFailed, match="empty tree"):
        verify_consistency(0, ROOTS[1], 4, ROOTS[4], [])
    with pytest.raises(VerificationFailed, match="empty tree"):
        verify_consistency(0, EMPTY_ROOT, 0, ROOTS[1], [])
    with pytest.raises(VerificationFailed, match="cannot follow"):
        verify_consistency(-1, EMPTY_ROOT, 4, ROOTS[4], [])


@pytest.mark.slow
def test_a_huge_tree_is_hashed_and_proved_without_recursion() -> None:
    hashes = [number.to_bytes(32, "big") for number in range(2**17 + 3)]
    root = root_of(hashes)
    for index in (0, 2**16, 2**17 + 2):
        verify_inclusion(hashes[index], index, len(hashes), inclusion_path(hashes, index), root)
    with pytest.raises(VerificationFailed):
        verify_inclusion(hashes[0], 0, 2**63, [root] * 63, root)
