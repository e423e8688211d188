"""Merkle trees as RFC 6962 section 2.1 has them: hashes, roots, and proofs of inclusion and consistency.

A tree of size n > 1 joins a left tree over the first k leaves, k the largest power of two below n, and a right tree
over the rest. A leaf is hashed behind a zero byte and two subtrees behind a one byte, so that no leaf can pass for
an inner node. Every node covers a range [begin, end) of leaves: a proof is the roots of certain ranges, which the
functions `..._ranges` list, so that whoever keeps subtrees need not hash leaves again.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from equipoise.errors import VerificationFailed

HASH_BYTES = 32
EMPTY_ROOT = sha256().digest()


def leaf_hash(data: bytes) -> bytes:
    """Returns the hash of a leaf with this content."""
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Returns the hash of the node that joins two subtrees with these hashes.

    Args:
        left: the hash of the left subtree, 32 bytes.
        right: that of the right one, 32 bytes.
    """
    return sha256(b"\x01" + left + right).digest()


def root_of(hashes: Sequence[bytes]) -> bytes:
    """Returns the root of the tree over leaves with these hashes, which are `leaf_hash` of their contents.

    Joining neighbours level by level, with an odd last node moved up as it is, gives the tree defined above: at
    every level but the top its nodes are complete but for the last.
    """
    if not hashes:
        return EMPTY_ROOT
    level = list(hashes)
    while len(level) > 1:
        joined = [node_hash(left, right) for left, right in zip(level[::2], level[1::2], strict=False)]
        level = joined + level[len(joined) * 2 :]
    return level[0]


def inclusion_ranges(index: int, size: int) -> list[tuple[int, int]]:
    """Return the ranges whose roots prove that leaf `index` is in a tree of this size, lowest first.

    Args:
        index: of the leaf, from 0.
        size: how many leaves the tree has, above `index`.
    """
    begin, end = 0, size
    ranges = []
    while end - begin > 1:
        middle = _middle(begin, end)
        if index < middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((begin, middle))
            begin = middle
    return ranges[::-1]


def consistency_ranges(old_size: int, new_size: int) -> list[tuple[int, int]]:
    """Return the ranges whose roots prove that the new tree begins with the old one, lowest first.

    0 <= old_size <= new_size. None are needed where either tree says it alone: an empty old one, or equal sizes.

    Args:
        old_size: how many leaves the old tree has, at least 0.
        new_size: how many the new one has, at least as many.
    """
    if old_size == 0:
        return []
    begin, end = 0, new_size
    ranges = []
    while old_size != end:
        middle = _middle(begin, end)
        if old_size <= middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((begin, middle))
            begin = middle
    if begin > 0:
        ranges.append((begin, end))
    return ranges[::-1]


def inclusion_path(hashes: Sequence[bytes], index: int) -> list[bytes]:
    """Returns the audit path of leaf `index` in the tree over these leaf hashes (RFC 6962 section 2.1.1).

    Args:
        hashes: of all leaves, 32 bytes each.
        index: of the leaf, from 0.
    """
    return [root_of(hashes[begin:end]) for begin, end in inclusion_ranges(index, len(hashes))]


def verify_inclusion(hashed: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> None:
    """Checks that a leaf is in a tree (RFC 6962 section 2.1.1).

    Args:
        hashed: the leaf's hash, which whoever checks must compute from its content.
        index: the leaf's number, from 0.
        size: how many leaves the tree has.
        path: the audit path, 32 bytes each, from the leaf upwards.
        root: the tree's root.

    Raises:
        VerificationFailed: the path does not lead to the root, or has another length.
    """
    if not 0 <= index < size:
        raise VerificationFailed(f"the tree of size {size} has no leaf {index}")
    ranges = inclusion_ranges(index, size)
    _require_hashes(path, len(ranges), "inclusion")
    for (begin, _), sibling in zip(ranges, path, strict=True):
        hashed = node_hash(hashed, sibling) if begin > index else node_hash(sibling, hashed)
    if hashed != root:
        raise VerificationFailed(f"the proof of inclusion of leaf {index} does not lead to the tree's root")


def verify_consistency(
    old_size: int, old_root: bytes, new_size: int, new_root: bytes, path: Sequence[bytes]
) -> None:
    """Checks that a tree begins with an older one (RFC 6962 section 2.1.2).

    Args:
        old_size: how many leaves the older tree has.
        old_root: its root.
        new_size: how many leaves the newer tree has.
        new_root: its root.
        path: the proof, 32 bytes each.

    Raises:
        VerificationFailed: the proof does not lead to both roots, or the newer tree is the smaller one.
    """
    if not 0 <= old_size <= new_size:
        raise VerificationFailed(f"a tree of size {new_size} cannot follow one of size {old_size}")
    ranges = consistency_ranges(old_size, new_size)
    _require_hashes(path, len(ranges), "consistency")
    if old_size == 0:
        if old_root != EMPTY_ROOT or (new_size == 0 and new_root != EMPTY_ROOT):
            raise VerificationFailed("the root of a tree of size 0 is not that of the empty tree")
        return
    nodes = list(zip(ranges, path, strict=True))
    old = new = old_root
    if nodes and nodes[0][0][1] == old_size:
        # The old tree ends within a larger subtree: the proof begins with its last, complete part.
        (_, old), *nodes = nodes
        new = old
    for (begin, _), node in nodes:
        if begin < old_size:
            old = node_hash(node, old)
            new = node_hash(node, new)
        else:
            new = node_hash(new, node)
    if old != old_root or new != new_root:
        raise VerificationFailed(f"the tree of size {new_size} is not consistent with the tree of size {old_size}")


def _middle(begin: int, end: int) -> int:
    return begin + (1 << (end - begin - 1).bit_length() - 1)


def _require_hashes(path: Sequence[bytes], length: int, what: str) -> None:
    if len(path) != length:
        raise VerificationFailed(f"the proof of {what} has {len(path)} hashes where it needs {length}")
    if any(len(each) != HASH_BYTES for each in path):
        raise VerificationFailed(f"the proof of {what} has a hash that is not {HASH_BYTES} bytes long")
