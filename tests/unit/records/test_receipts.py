"""The payloads of receipts: one encoding, and every other refused; the chain of a session's receipts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from harness.answers import some_answers
from harness.shown_rounds import PROMISE

from equipoise.errors import VerificationFailed
from equipoise.records.canonical import canonical_json
from equipoise.records.receipts import ReceiptPayload, SessionReceiptPayload, chain_start, chain_step

TAKEN = ReceiptPayload("d", "r" * 32, "ann", bytes(range(32)), 2, 9, 1_700_000_000_000_000, PROMISE, None)
TRANSLATED = replace(TAKEN, questions=bytes(range(1, 33)))
WITHDRAWN = replace(TAKEN, commitment=None, statements=0, queries=0)
ANSWERED = SessionReceiptPayload("d", "s" * 32, "ann", 3, bytes(range(32)), 1_700_000_000_000_000, PROMISE)
PROMISE_FIELDS = json.loads(TAKEN.to_bytes())["promise"]


@pytest.mark.parametrize("receipt", [TAKEN, TRANSLATED, WITHDRAWN, ANSWERED])
def test_what_is_written_is_read(receipt: ReceiptPayload | SessionReceiptPayload) -> None:
    assert type(receipt).from_bytes(receipt.to_bytes()) == receipt


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
        {"commitment": None, "statements": 0, "queries": 0, "questions": "00" * 32},
        {"questions": "00"},
        {"questions": ""},
        {"promise": None},
        {"promise": PROMISE_FIELDS | {"unit": "round"}},
        {"promise": PROMISE_FIELDS | {"opened_root": "00"}},
        {"promise": PROMISE_FIELDS | {"more": 1}},
    ],
)
def test_what_is_never_written_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(VerificationFailed):
        ReceiptPayload.from_bytes(canonical_json(json.loads(TAKEN.to_bytes()) | change))


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"more": 1},
        {"sequence": 0},
        {"sequence": 1.0},
        {"time": -1},
        {"chain": 0},
        {"chain": "00"},
        {"promise": PROMISE_FIELDS | {"max_half_width": 1}},
    ],
)
def test_what_is_never_written_of_a_session_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(VerificationFailed):
        SessionReceiptPayload.from_bytes(canonical_json(json.loads(ANSWERED.to_bytes()) | change))


PROMISE_FIELDS = json.loads(TAKEN.to_bytes())["promise"]


@pytest.mark.slow
@pytest.mark.parametrize("receipt", [TAKEN, TRANSLATED, ANSWERED])
def test_no_flipped_bit_is_taken_for_the_same(receipt: ReceiptPayload | SessionReceiptPayload) -> None:
    data = receipt.to_bytes()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            read = type(receipt).from_bytes(bytes(flipped))
        except VerificationFailed:
            continue
        assert read != receipt


def test_a_chain_tells_everything_apart() -> None:
    """Another name, salt, place, slot, byte of a statement, number or number of cells: another chain."""
    names = [("d", "s", "a"), ("ds", "", "a"), ("d", "sa", ""), ("", "s", "a"), ("d", "s", "b")]
    starts = [chain_start(*each, salt) for each in names for salt in (bytes(32), bytes([1]) * 32)]
    answers = some_answers(np.array([9, 8], dtype=np.int64), np.array([3, 3], dtype=np.uint8), 4)
    steps = [
        *(chain_step(start, 1, 0, b"statement", answers) for start in starts[:2]),
        chain_step(starts[0], 2, 0, b"statement", answers),
        chain_step(starts[0], 1, 1, b"statement", answers),
        chain_step(starts[0], 1, 0, b"statemenu", answers),
        chain_step(starts[0], 1, 0, b"statement", replace(answers, values=answers.values + 1)),
        chain_step(starts[0], 1, 0, b"statement", replace(answers, methods=answers.methods + np.uint8(3))),
        chain_step(starts[0], 1, 0, b"statement", replace(answers, lows=answers.lows + 1)),
        chain_step(starts[0], 1, 0, b"statement", replace(answers, highs=answers.highs + 1)),
        chain_step(starts[0], 1, 0, b"statement", replace(answers, standard_errors=answers.standard_errors + 1)),
        chain_step(starts[0], 1, 0, b"statement", answers[:1]),
    ]
    assert len({*starts, *steps}) == len(starts) + len(steps)
    with pytest.raises(ValueError, match="32 bytes"):
        chain_start("d", "s", "a", b"short")
