"""Accounts that were lost with a store more than once: what was spent elsewhere each time counts, and only once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.ledger_store import NOW, ledger_store
from harness.stores import sqlite_url

from equipoise.accounting import Cost
from equipoise_server.ledger.adjustments import write_off
from equipoise_server.ledger.guard_comparison import Finding
from equipoise_server.ledger.guard_snapshot import Snapshot
from equipoise_server.ledger.losses import of_lost_accounts
from equipoise_server.storage.store import Store

LATE, ORDER = "data/late", 8.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Without any account."""
    store = ledger_store(sqlite_url(tmp_path), [])
    yield store
    store.close()


def lose(store: Store, sequence: int, finding: Finding, divergence: int) -> int:
    """What counts as lost of an account that is not in the store, once a guard that knew of it was written off."""
    known = Snapshot(sequence, bytes([sequence]) * 32, {LATE: Cost(divergence=divergence)}, {LATE: ORDER})
    with store.write() as connection:
        write_off(connection, known, finding, NOW)
    with store.read() as connection:
        return of_lost_accounts(connection)[LATE].cost.divergence


def test_what_two_copies_that_went_different_ways_have_spent_is_added(store: Store) -> None:
    assert lose(store, 90, Finding.FORKED, 5) == 5
    assert lose(store, 91, Finding.FORKED, 4) == 9


def test_of_an_older_copy_only_what_was_not_written_off_yet_is_added(store: Store) -> None:
    assert lose(store, 90, Finding.BEHIND, 5) == 5
    assert lose(store, 91, Finding.BEHIND, 7) == 7
    assert lose(store, 92, Finding.BEHIND, 6) == 7
