"""Pages of the log as auditors get them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.rounds_bench import Bench

from equipoise.errors import InvalidArgument, NotFound, OutOfRange
from equipoise.records.merkle import leaf_hash, root_of
from equipoise_server.transparency import views
from equipoise_server.transparency.views import LogViews


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, f"sqlite:///{tmp_path / 'equipoise.db'}")
    yield made
    made.stop()


@pytest.mark.slow
def test_nothing_is_shown_before_it_is_signed(bench: Bench) -> None:
    log_views = LogViews(bench.store)
    with pytest.raises(NotFound):
        log_views.checkpoint()
    assert log_views.leaves(0, "") == ([], "")
    assert log_views.records(0, "") == ([], "")
    with pytest.raises(OutOfRange):
        log_views.inclusion(0, 1)
    bench.rounds.schedule.keep()
    assert log_views.checkpoint()
    assert len(log_views.leaves(0, "")[0]) == 5


@pytest.mark.slow
def test_a_page_of_large_records_ends_early(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.opened()
    bench.rounds.schedule.keep()
    log_views = LogViews(bench.store)
    (first, second, *_, third), token = log_views.records(0, "")
    assert (first.index, second.index, third.index, token) == (0, 1, 5, "")
    monkeypatch.setattr(views, "PAGE_BYTES", 1)
    assert log_views.records(0, "") == ([first], "1")
    assert log_views.records(0, "1") == ([second], "2")
    assert log_views.records(0, "5") == ([third], "")
    for record in (first, second, third):
        hashes = [*(item.hash for item in record.items), *record.padding]
        assert root_of(hashes).hex().encode() in record.leaf
    leaves, token = log_views.leaves(2, "")
    assert (leaves, token) == ([first.leaf, second.leaf], "2")
    assert log_views.leaves(2, "5") == ([third.leaf], "")
    assert leaf_hash(leaves[0]) == log_views.inclusion(1, 2)[0]
    with pytest.raises(InvalidArgument, match="page_token"):
        log_views.records(0, "-1")
