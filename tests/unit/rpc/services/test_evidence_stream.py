"""Evidence and workloads come whole, piece by piece, and large ones are not read once for every piece."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import pytest

from equipoise.errors import DataLoss
from equipoise_server.rounds.store.committed_content import WorkloadCheck
from equipoise_server.rpc.services.evidence_stream import PIECE_BYTES, READ_BYTES, evidence_pieces, workload_pieces


@dataclass
class Stored:
    """Stands for the rounds: one workload, and how often it was read."""

    workload: bytes
    committed: bytes | None = None
    reads: list[int] = field(default_factory=list)

    def workload_check(self, _: str, round_id: str) -> WorkloadCheck:
        return WorkloadCheck(round_id, b"salt", self.committed)

    def submitted(self, _: str, __: str, first: int, length: int) -> bytes:
        self.reads.append(first)
        return self.workload[first : first + length]


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, READ_BYTES - 1, READ_BYTES, 3 * READ_BYTES + 5])
def test_a_workload_comes_whole_in_few_reads(size: int) -> None:
    stored: Any = Stored(bytes(size), sha256(b"salt" + bytes(size)).digest() if size else None)
    pieces = list(workload_pieces(stored, "ann", "r"))
    assert b"".join(pieces) == stored.workload
    assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces)
    assert len(stored.reads) == -(-size // READ_BYTES) + 1
    assert list(evidence_pieces(stored.workload)) == pieces


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES + 1, READ_BYTES])
def test_a_workload_that_is_not_the_one_on_record_never_comes_whole(size: int) -> None:
    stored: Any = Stored(bytes(size), bytes(32))
    given: list[bytes] = []
    with pytest.raises(DataLoss, match="what is stored is not what is on record"):
        given.extend(workload_pieces(stored, "ann", "r"))
    assert len(b"".join(given)) <= max(0, size - 1)
