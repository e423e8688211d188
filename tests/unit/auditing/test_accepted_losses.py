"""A part of the log that was lost, as the custodian admits: an auditor accepts it, and audits pass again."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.audit_failures import failed_checks, failures
from harness.custodian import Custodian
from harness.record_book import digest_of

from equipoise.auditing.accepted_losses import accept_loss
from equipoise.auditing.archive import AuditorLog
from equipoise.auditing.verify import verify
from equipoise.errors import InvalidArgument, VerificationFailed, WrongState
from equipoise.profile.accepted_losses import LOSSES, accepted_losses
from equipoise.profile.receipt_store import ReceiptStore
from equipoise.records.record import Kind
from equipoise.records.signed_notes import Checkpoint, claimed

LOST = "bb"


@pytest.fixture
def seen(custodian: Custodian, tmp_path: Path) -> Checkpoint:
    """What an auditor saw of a round whose records are then lost; the next round is another one."""
    custodian.open(LOST)
    note = custodian.checkpoint()
    ReceiptStore(tmp_path).keep_checkpoint(note)
    custodian.remove(LOST)
    del custodian.listed[LOST]
    return claimed(note)


def restored(custodian: Custodian, size: int, root: bytes) -> None:
    """The custodian's records of a restoration, beyond the size that was shown."""
    told = {"lost_size": size, "lost_root": root.hex(), "time": 0}
    while len(custodian.records) <= size:
        custodian._record(Kind.LOG_RESTORED, [("restoration", told)])


def accept(custodian: Custodian, profile: Path, root: bytes) -> Checkpoint:
    archive = custodian.archive()
    log = archive.checkpoint, archive.leaves, archive.records
    return accept_loss(profile, root.hex(), log, custodian.trusted)[1]


def test_an_admitted_loss_is_accepted_and_named_from_then_on(
    custodian: Custodian, seen: Checkpoint, tmp_path: Path
) -> None:
    restored(custodian, seen.size, seen.root)
    store = ReceiptStore(tmp_path)
    before = store.checkpoint()
    assert before is not None
    said = failures(custodian, seen=[before])["A3"]
    assert f"says that a log of size {seen.size} was lost. Find out what was; then accept that loss" in said
    assert said.endswith(f"equipoise audit accept-loss {seen.root.hex()}")
    now = accept(custodian, tmp_path, seen.root)
    after = store.checkpoint()
    assert after is not None
    assert claimed(after) == now
    assert (tmp_path / LOSSES / seen.root.hex()).read_bytes() == before
    custodian.own = AuditorLog("auditor", losses=accepted_losses(tmp_path))
    audit = verify(custodian.archive(), custodian.trusted, [after])
    assert "A3" not in failed_checks(audit)
    assert f"the log of size {seen.size} with the root {seen.root.hex()} is lost" in " ".join(audit.remarks)


def test_only_the_loss_that_is_named_is_accepted(custodian: Custodian, seen: Checkpoint, tmp_path: Path) -> None:
    restored(custodian, seen.size, seen.root)
    with pytest.raises(InvalidArgument, match=f"is not that of the checkpoint in the profile, {seen.root.hex()}"):
        accept(custodian, tmp_path, bytes(32))
    assert not (tmp_path / LOSSES).exists()


@pytest.mark.parametrize("told", ["nothing", "a smaller one", "another root", "a later one of another part"])
def test_what_the_custodian_does_not_admit_is_not_accepted(
    custodian: Custodian, seen: Checkpoint, tmp_path: Path, told: str
) -> None:
    if told == "a smaller one":
        restored(custodian, seen.size - 1, seen.root)
    if told == "another root":
        restored(custodian, seen.size, bytes.fromhex(digest_of("another")))
    if told == "a later one of another part":
        # The log was the same up to here, it says, and what was seen is of an entry before.
        while len(custodian.records) < seen.size:
            custodian.admit(f"analyst-{len(custodian.records)}")
        restored(custodian, seen.size + 3, seen.root)
    while len(custodian.records) <= seen.size:
        custodian.admit(f"analyst-{len(custodian.records)}")
    kept = (tmp_path / "checkpoint").read_bytes()
    assert "accept-loss" not in failures(custodian, seen=[kept])["A3"]
    with pytest.raises(VerificationFailed, match="The log says nothing of a loss: keep the checkpoint"):
        accept(custodian, tmp_path, seen.root)
    assert (tmp_path / "checkpoint").read_bytes() == kept


def test_where_the_guard_was_lost_the_keys_that_signed_are_retired(
    custodian: Custodian, seen: Checkpoint, tmp_path: Path
) -> None:
    first = custodian.keys[0]
    custodian.add_key()
    custodian.retire_key(first)
    kept = (tmp_path / "checkpoint").read_bytes()
    assert "every key that signed that checkpoint was retired" in failures(custodian, seen=[kept])["A3"]
    accept(custodian, tmp_path, seen.root)
    assert accepted_losses(tmp_path) == {seen.root.hex(): seen.size}


def test_a_checkpoint_that_a_key_in_force_has_signed_is_not_lost_by_the_end_of_another_key(
    custodian: Custodian, tmp_path: Path
) -> None:
    """Else a custodian could fork its log, and retire one of the keys that have signed both."""
    custodian.open(LOST)
    first, _ = custodian.keys[0], custodian.add_key()
    note = custodian.checkpoint()
    ReceiptStore(tmp_path).keep_checkpoint(note)
    custodian.remove(LOST)
    del custodian.listed[LOST]
    custodian.retire_key(first)
    while len(custodian.records) <= claimed(note).size:
        custodian.admit(f"analyst-{len(custodian.records)}")
    trusted = [first.verifier, *custodian.trusted]
    problem = failed_checks(verify(custodian.archive(), trusted, [note]))["A3"]
    assert "the log was forked" in problem
    assert "accept-loss" not in problem
    with pytest.raises(VerificationFailed, match="The log says nothing of a loss: keep the checkpoint"):
        accept(custodian, tmp_path, claimed(note).root)


def test_nothing_is_accepted_where_nothing_was_lost(custodian: Custodian, tmp_path: Path) -> None:
    root = claimed(custodian.checkpoint()).root
    with pytest.raises(WrongState, match="keeps no checkpoint"):
        accept(custodian, tmp_path, root)
    ReceiptStore(tmp_path).keep_checkpoint(custodian.checkpoint())
    custodian.play(LOST)
    with pytest.raises(WrongState, match="nothing was lost"):
        accept(custodian, tmp_path, root)
