"""Proofs of consistency from all leaves at once; a server makes them of tiles."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.records.merkle import consistency_ranges, root_of


def consistency_path(hashes: Sequence[bytes], old_size: int) -> list[bytes]:
    """The proof that the tree over these leaf hashes begins with that of `old_size` (RFC 6962 section 2.1.2)."""
    return [root_of(hashes[begin:end]) for begin, end in consistency_ranges(old_size, len(hashes))]
