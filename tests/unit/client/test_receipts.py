"""A receipt's payload: one encoding, and every other refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from equipoise.encoding import canonical_json
from equipoise.errors import VerificationFailed
from equipoise.receipts import ReceiptPayload

TAKEN = ReceiptPayload("d", "r" * 32, "ann", bytes(range(32)), 2, 9, 1_700_000_000_000_000)
WITHDRAWN = replace(TAKEN, commitment=None, statements=0, queries=0)


@pytest.mark.parametrize("receipt", [TAKEN, WITHDRAWN])
def test_what_is_written_is_read(receipt: ReceiptPayload) -> None:
    assert ReceiptPayload.from_bytes(receipt.to_bytes()) == receipt


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": True},
        {"more": 1},
        {"analyst": None},
        {"statements": 2.0},
        {"queries": -1},
        {"accept_time": -1},
        {"commitment": "00"},
        {"commitment": "AB" * 32},
        {"commitment": None},
    ],
)
def test_what_is_never_written_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(VerificationFailed):
        ReceiptPayload.from_bytes(canonical_json(json.loads(TAKEN.to_bytes()) | change))


def test_no_flipped_bit_is_taken_for_the_same() -> None:
    data = TAKEN.to_bytes()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            read = ReceiptPayload.from_bytes(bytes(flipped))
        except VerificationFailed:
            continue
        assert read != TAKEN
