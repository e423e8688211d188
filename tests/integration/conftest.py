"""The custodian's side without a network, on a store of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.rounds_bench import Bench


@pytest.fixture
def bench(tmp_path: Path, store_url: str) -> Iterator[Bench]:
    """A bench on an empty store of either kind."""
    bench = Bench(tmp_path, store_url)
    yield bench
    bench.stop()


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Bench]:
    """A bench for what does not depend on the store, where a worker starts in a second or two."""
    bench = Bench(tmp_path, f"sqlite:///{tmp_path / 'equipoise.db'}")
    yield bench
    bench.stop()
