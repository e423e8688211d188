"""A store and its rollback guard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.ledger_store import ledger_store, open_with

from equipoise_server.ledger.caps import Cap, Composition, at_order
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.storage.store import Store


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    """Of the store, beside it."""
    return Guard(tmp_path / "guard")


@pytest.fixture
def store(store_url: str, guard: Guard) -> Iterator[Store]:
    """A store with one account and some rounds, which its guard knows."""
    store = ledger_store(store_url, [f"r{number}" for number in range(9)])
    guard.advance(store)
    open_with(store, "data/t", Composition.SEQUENTIAL, at_order("cap", Cap(1.0, 1e-6)))
    guard.advance(store)
    yield store
    store.close()
