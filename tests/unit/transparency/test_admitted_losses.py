"""What the log admits to be lost, as every analyst is shown it: restorations and retired keys of the log alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.log_bench import LogBench, log_bench
from harness.stores import back_up, restore

from equipoise.records.admitted_losses import AdmittedLosses
from equipoise.records.record import Kind, read_leaf
from equipoise.verification.admitted_losses import admitted_loss, open_losses
from equipoise_server.storage.tree_heads import TreeHead
from equipoise_server.transparency import keys, log
from equipoise_server.transparency.admitted_losses import admitted_losses
from equipoise_server.transparency.keys import PublicKey, Purpose
from equipoise_server.transparency.log_recovery import go_on_beyond
from equipoise_server.transparency.sequencing import append_due

DEPLOYMENT = "test"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LogBench]:
    """A log with its first record, which is not signed yet."""
    with log_bench(tmp_path, f"sqlite:///{tmp_path / 'equipoise.db'}") as bench:
        bench.start()
        yield bench


def shown(bench: LogBench) -> AdmittedLosses:
    """What is shown, once a checkpoint is signed; its bytes can be read, and its proofs hold."""
    with bench.store.read() as connection:
        losses = admitted_losses(connection, bench.signer, DEPLOYMENT)
        assert losses is not None
        open_losses(losses, bench.signer.verifier_keys(connection))
    assert AdmittedLosses.from_bytes(losses.to_bytes()) == losses
    return losses


def kinds(losses: AdmittedLosses) -> list[Kind]:
    return [read_leaf(record.leaf, "a record").kind for record in losses.records]


def newest_note(bench: LogBench) -> bytes:
    """The newest checkpoint as it is handed out."""
    with bench.store.read() as connection:
        note = log.checkpoint(connection)
    assert note is not None
    return note


def test_nothing_is_shown_before_a_checkpoint_is_signed(bench: LogBench) -> None:
    with bench.store.read() as connection:
        assert admitted_losses(connection, bench.signer, DEPLOYMENT) is None


@pytest.mark.slow
def test_a_restoration_is_shown_once_and_covers_what_was_lost(bench: LogBench) -> None:
    bench.sequence()
    assert shown(bench).records == ()
    bench.store.close()
    copy = back_up(bench.url)
    bench.open()
    for name in ("gone", "gone too", "the last"):
        bench.record(name)
    bench.sequence()
    lost = newest_note(bench)
    known = TreeHead(bench.checkpoint().size, bench.checkpoint().root)
    bench.store.close()
    restore(bench.url, copy)
    bench.open()
    with bench.store.write() as connection:
        assert go_on_beyond(connection, known, bench.now) == 4
    bench.guard.set(bench.store)
    bench.record("after it", round_id="r")
    bench.sequence()
    losses = shown(bench)
    # Each of the four entries says the same; the first tells where the lost part began.
    assert kinds(losses) == [Kind.LOG_RESTORED]
    assert losses.records[0].index == 1
    with bench.store.read() as connection:
        assert admitted_loss(losses, lost, bench.signer.verifier_keys(connection))


def test_retired_keys_of_the_log_are_shown_and_those_of_auditors_are_not(bench: LogBench) -> None:
    second = bench.signer.make_key(bench.now)
    auditor = PublicKey(Purpose.AUDITOR, bytes(range(32)), bench.now)
    with bench.store.write() as connection:
        first = keys.in_force(connection, Purpose.LOG)[0]
        keys.add(connection, second)
        keys.add(connection, auditor)
        keys.retire(connection, Purpose.AUDITOR, auditor.id, bench.now)
    bench.sequence()
    assert kinds(shown(bench)) == []
    with bench.store.write() as connection:
        keys.retire(connection, Purpose.LOG, first.id, bench.now)
    bench.sequence()
    assert kinds(shown(bench)) == [Kind.KEY_RETIRED]


def test_an_entry_of_the_log_that_is_not_signed_yet_is_not_shown(bench: LogBench) -> None:
    second = bench.signer.make_key(bench.now)
    with bench.store.write() as connection:
        first = keys.in_force(connection, Purpose.LOG)[0]
        keys.add(connection, second)
    bench.sequence()
    with bench.store.write() as connection:
        keys.retire(connection, Purpose.LOG, first.id, bench.now)
        append_due(connection, bench.now)
    assert kinds(shown(bench)) == []
