"""What a profile keeps of what the custodian signed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness.kept_receipts import LOG, PAYLOAD
from harness.shown_rounds import PROMISE
from harness.small_custodian import DEPLOYMENT, ROUND, SALT

from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.profile.receipt_store import ReceiptStore, check_answered
from equipoise.records.receipts import ReceiptPayload, SessionReceiptPayload
from equipoise.records.record import workload_commitment


def test_the_newest_receipt_is_kept(tmp_path: Path) -> None:
    """A request that is sent again gets its first receipt, which may be in force no longer."""
    kept = ReceiptStore(tmp_path)
    assert kept.receipt(ROUND) is None
    first, second = (LOG.receipt(replace(PAYLOAD, accept_time=time)) for time in (1_000, 2_000))
    for envelope in (first, second, first):
        kept.keep_receipt(ROUND, envelope)
    assert kept.receipt(ROUND) == second
    assert kept.receipt("0" * 32) is None


def test_several_programs_may_keep_in_one_profile(tmp_path: Path) -> None:
    receipts = [LOG.receipt(replace(PAYLOAD, accept_time=time)) for time in range(64)]
    with ThreadPoolExecutor(8) as programs:
        list(programs.map(lambda receipt: ReceiptStore(tmp_path).keep_receipt(ROUND, receipt), receipts))
    assert ReceiptStore(tmp_path).receipt(ROUND) in receipts
    assert [each.name for each in (tmp_path / "receipts").iterdir()] == [ROUND]


def test_a_receipt_that_could_hide_behind_an_older_one_is_refused(tmp_path: Path) -> None:
    """A custodian who dates the second receipt back could show the first workload as the last, with its receipt."""
    kept = ReceiptStore(tmp_path)
    kept.keep_receipt(ROUND, LOG.receipt(PAYLOAD), repeated=False)
    other = workload_commitment(SALT, b"other")
    for time in (999, 1_000):
        envelope = LOG.receipt(replace(PAYLOAD, commitment=other, accept_time=time))
        with pytest.raises(VerificationFailed, match="not newer"):
            kept.keep_receipt(ROUND, envelope, repeated=False)
    with pytest.raises(VerificationFailed, match="not newer"):
        kept.keep_receipt(ROUND, LOG.receipt(replace(PAYLOAD, commitment=other)))
    assert kept.receipt(ROUND) == LOG.receipt(PAYLOAD)


def test_the_receipt_of_a_session_s_newest_answer_is_kept(tmp_path: Path) -> None:
    """Stored answers can be read again, with their receipts; two chains for one answer convict the custodian."""
    kept = ReceiptStore(tmp_path)
    assert kept.session_receipt(ROUND) is None
    first = SessionReceiptPayload(DEPLOYMENT, ROUND, "ann", 1, bytes(32), 1_000, PROMISE)
    second = replace(first, sequence=2, chain=bytes([2]) * 32)
    for payload in (first, second, first, replace(second, time=2_000)):
        kept.keep_session_receipt(ROUND, LOG.session_receipt(payload))
    for other in (replace(second, chain=bytes(32)), PAYLOAD):
        envelope = LOG.receipt(other) if isinstance(other, ReceiptPayload) else LOG.session_receipt(other)
        with pytest.raises(VerificationFailed):
            kept.keep_session_receipt(ROUND, envelope)
    assert kept.session_receipt(ROUND) == LOG.session_receipt(second)
    assert kept.receipt(ROUND) is None


def test_a_receipt_is_of_the_answer_that_came() -> None:
    """Else what is signed could be what is released later, and not what was told."""
    payload = SessionReceiptPayload(DEPLOYMENT, ROUND, "ann", 1, bytes(32), 1_000, PROMISE)
    check_answered(LOG.session_receipt(payload), ROUND, "ann", 1, bytes(32))
    changes: list[dict[str, Any]] = [{"session": "cd" * 16}, {"analyst": "bob"}, {"sequence": 2}, {"chain": SALT}]
    for change in changes:
        with pytest.raises(VerificationFailed, match="other statements or answers"):
            check_answered(LOG.session_receipt(replace(payload, **change)), ROUND, "ann", 1, bytes(32))


@pytest.mark.parametrize("round_id", ["", "../ann", "a/b", ".", "0" * 65])
def test_what_is_no_round_names_no_file(tmp_path: Path, round_id: str) -> None:
    with pytest.raises(InvalidArgument, match="round"):
        ReceiptStore(tmp_path).keep_receipt(round_id, LOG.receipt(PAYLOAD))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damaged", [b"", b"[]", b'{"payload":1}', b'{"payload":"AA=="}'])
def test_what_is_no_receipt_is_not_kept(tmp_path: Path, damaged: bytes) -> None:
    kept = ReceiptStore(tmp_path)
    kept.keep_receipt(ROUND, LOG.receipt(PAYLOAD))
    with pytest.raises(VerificationFailed):
        kept.keep_receipt(ROUND, damaged)
    assert kept.receipt(ROUND) == LOG.receipt(PAYLOAD)
