"""The guard's file: missing, damaged, newer, or not to be written; each is said, and the old one stays."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from harness.ledger_store import reserve

from equipoise.accounting import Cost
from equipoise.errors import DataLoss, Unavailable
from equipoise.records.canonical import canonical_json
from equipoise_server.ledger import journal
from equipoise_server.ledger.guard_comparison import Finding
from equipoise_server.ledger.guard_counter import BLOCK_BYTES, split
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.storage.crash_points import CrashPoint, install_hook
from equipoise_server.storage.store import Store, open_store

DATA = "data/t"


def document(guard: Guard) -> Any:
    """What the guard's file says besides the count."""
    return json.loads(split(guard.path.read_bytes())[0])


def counted(guard: Guard) -> int:
    """What another server reads."""
    snapshot = Guard(guard.path).read()
    assert snapshot is not None
    return snapshot.answered


def test_answers_are_counted_in_place_and_never_backwards(store: Store, guard: Guard) -> None:
    other = Guard(guard.path)
    for number in range(1, 6):
        guard.count(number)
        assert counted(guard) == number
        file = guard.path.stat().st_ino
        guard.count(number)
        assert guard.path.stat().st_ino == file
    guard.count(2)
    assert counted(guard) == 5
    before = document(guard)
    other.count(7)  # by another server, which replaces the file
    guard.count(8)
    assert counted(other) == 8
    assert document(guard) == before | {"answered": 8}
    with pytest.raises(DataLoss, match="has 0 answers of sessions, but 8 had been given"):
        guard.advance(store)
    guard.set(store)  # as after a write-off
    assert counted(guard) == 0
    guard.count(1)
    assert counted(guard) == 1


@pytest.mark.parametrize("torn", [b"", b"\0" * 37, b"\xff" * 4096, b"9" * 20])
def test_a_count_that_was_cut_off_leaves_the_one_before(store: Store, guard: Guard, torn: bytes) -> None:
    del store
    guard.count(6)
    before = guard.path.read_bytes()
    guard.count(7)
    after = bytearray(guard.path.read_bytes())
    place = next(at for at in range(len(after)) if after[at] != before[at]) // BLOCK_BYTES * BLOCK_BYTES
    after[place : place + len(torn)] = torn
    guard.path.write_bytes(after)
    assert counted(guard) == (6 if torn else 7)
    guard.count(8)
    assert counted(guard) == 8


def test_answers_are_not_counted_where_the_guard_is_gone(store: Store, guard: Guard) -> None:
    del store
    guard.count(1)
    guard.path.unlink()
    with pytest.raises(DataLoss, match="is missing"):
        guard.count(2)


def test_a_missing_guard_is_refused(store: Store, guard: Guard) -> None:
    guard.path.unlink()
    with pytest.raises(DataLoss, match="is missing, though the budget journal has 1 entries and the log 0"):
        guard.advance(store)
    with store.read() as connection:
        assert guard.compare(connection, None) is Finding.MISSING


def test_a_missing_guard_is_made_where_nothing_has_happened(tmp_path: Path, store_url: str) -> None:
    fresh = open_store(store_url)
    Guard(tmp_path / "guard").advance(fresh)
    assert (tmp_path / "guard").stat().st_mode & 0o777 == 0o600
    fresh.close()


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"version": 1, "sequence": 1}', '{"version": 1', "\x00"])
def test_a_damaged_guard_is_refused(store: Store, guard: Guard, content: str) -> None:
    guard.path.write_text(content)
    with pytest.raises(DataLoss, match="is damaged"):
        guard.advance(store)


def test_a_guard_with_a_field_that_is_missing_or_damaged_is_refused(store: Store, guard: Guard) -> None:
    fields = document(guard)
    log = fields["log"]
    changes = [{"size": -1}, {"root": "00"}, {"size": "x"}, {"root": None}]
    damaged = [{"log": log | change} for change in changes] + [{"committed": {"data/flights": [0, 0, 0, 0]}}]
    missing = [{name: value for name, value in fields.items() if name != left_out} for left_out in fields]
    for changed in [fields | change for change in damaged] + missing:
        guard.path.write_bytes(canonical_json(changed))
        with pytest.raises(DataLoss, match="is damaged"):
            guard.advance(store)
    guard.path.write_text(json.dumps(fields))  # with white space: not the bytes that a guard writes
    with pytest.raises(DataLoss, match="is damaged"):
        guard.advance(store)
    guard.path.write_bytes(canonical_json(fields))
    guard.advance(store)


def test_a_newer_guard_is_refused(store: Store, guard: Guard) -> None:
    guard.path.write_bytes(canonical_json(document(guard) | {"version": 2, "more": 1}))
    with pytest.raises(DataLoss, match="has version 2"):
        guard.advance(store)


def test_a_guard_that_cannot_be_written_is_said_and_stays(store: Store, guard: Guard) -> None:
    before = guard.path.read_text()
    reserve(store, "r0", {DATA: Cost(divergence=1)})
    guard.path.with_name("guard.new").mkdir()
    with pytest.raises(Unavailable, match="cannot be written"):
        guard.advance(store)
    assert guard.path.read_text() == before


@pytest.mark.slow
def test_a_crash_before_the_replacement_leaves_the_old_guard_whole(store: Store, guard: Guard) -> None:
    before = guard.path.read_text()
    reserve(store, "r0", {DATA: Cost(divergence=1)})

    def crash(point: CrashPoint) -> None:
        if point is CrashPoint.GUARD_PREPARED:
            raise KeyboardInterrupt

    with install_hook(crash), pytest.raises(KeyboardInterrupt):
        guard.advance(store)
    assert guard.path.read_text() == before
    guard.advance(store)
    assert guard.path.read_text() != before


def test_racing_servers_leave_the_guard_at_the_head(store: Store, guard: Guard) -> None:
    def go_on(round_id: str) -> None:
        reserve(store, round_id, {DATA: Cost(divergence=1)})
        Guard(guard.path).advance(store)

    threads = [threading.Thread(target=go_on, args=(f"r{number}",)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    snapshot = guard.read()
    assert snapshot is not None
    assert (snapshot.sequence, snapshot.committed) == (10, {DATA: Cost(divergence=9)})
    with store.read() as connection:
        assert guard.seen.path.read_bytes() == b"".join(journal.digests(connection, 0, 10))
