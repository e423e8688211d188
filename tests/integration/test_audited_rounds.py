"""Every way that rounds can end, and every way that accounts can count, as the checks of an audit see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from integration.rounds_bench import TERMS, Bench, log_of

from equipoise.auditing.archive import Archive, ListedRound
from equipoise.auditing.verify import Audit, Outcome, verify
from equipoise.model.times import to_microseconds
from equipoise_server.mechanisms.interface import Budget
from equipoise_server.rounds.datasets import Counting
from equipoise_server.transparency.views import LogViews

Part = TypeVar("Part")
FEW = 3  # on a page
NOISE = replace(TERMS, mechanism="gaussian", options={})


def all_pages(page: Callable[[int, str], tuple[list[Part], str]]) -> tuple[Part, ...]:
    """What a list gives, a few at a time."""
    found, token = page(FEW, "")
    while token:
        more, token = page(FEW, token)
        assert 0 < len(more) <= FEW
        found += more
    return tuple(found)


def audited(bench: Bench) -> Audit:
    """Everything as an auditor finds it now."""
    bench.rounds.keep_schedule()
    views = LogViews(bench.store)
    rounds = all_pages(bench.rounds.list)
    archive = Archive(
        time=bench.clock(),
        checkpoint=views.checkpoint(),
        earlier=None,
        leaves=all_pages(views.leaves),
        records=all_pages(views.records),
        rounds=tuple(
            ListedRound(
                each.id,
                each.terms.dataset,
                each.state.value,
                to_microseconds(each.open_time),
                None if each.release_time is None else to_microseconds(each.release_time),
            )
            for each in rounds
        ),
        journal=all_pages(bench.rounds.journal),
    )
    with bench.store.read() as connection:
        signer = log_of(bench.directory, bench.store, bench.guard, bench.clock()).signer
        trusted = signer.verifier_keys(connection)
    return verify(archive, trusted)


def problems(audit: Audit) -> list[str]:
    return [f"{each.number}: {each.detail}" for each in audit.checks if each.outcome is Outcome.FAILED]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, f"sqlite:///{tmp_path / 'equipoise.db'}")
    yield made
    made.stop()


def test_rounds_of_every_end_are_in_order(bench: Bench) -> None:
    bench.rounds.abort(bench.opened(), "not wanted", "first")
    bench.rounds.abort(bench.sealed(), "not wanted", "second")
    bench.rounds.set_cap("data/shop", Budget(30.0, 1e-3), "cap")
    bench.rounds.abort(bench.completed(NOISE), "not wanted", "third")
    waiting = bench.completed()
    bench.rounds.release(waiting, "release")
    audit = audited(bench)
    assert problems(audit) == []
    assert audit.recorded is not None
    # The last one's release enters the log at its release time.
    assert [held.state for held in audit.recorded.rounds.values()] == ["aborted", "aborted", "aborted", "sealed"]
    assert {each.name: each.committed_epsilon for each in audit.standing} == pytest.approx(
        {name: committed for name, (_, committed) in bench.charged().items()}
    )
    bench.clock.move(60)
    audit = audited(bench)
    assert problems(audit) == []
    assert audit.recorded is not None
    assert audit.recorded.rounds[waiting].state == "released"
    bench.rounds.delete_analyst("ann", "delete")
    audit = audited(bench)
    assert problems(audit) == []
    removed, raised = audit.remarks
    assert removed.endswith("of analysts who were deleted, only the hashes are left")
    assert raised.endswith("the cap of data/shop was set to epsilon 30 at delta 0.001")


def test_accounts_of_one_order_are_in_order(tmp_path: Path) -> None:
    bench = Bench(tmp_path, f"sqlite:///{tmp_path / 'equipoise.db'}", counting=Counting(0, 0))
    try:
        bench.sealed(replace(TERMS, unit="analyst"))
        audit = audited(bench)
        assert problems(audit) == []
        assert {each.name: each.committed_epsilon for each in audit.standing} == pytest.approx(
            {name: committed for name, (_, committed) in bench.charged().items()}
        )
        assert all(each.order is not None for each in audit.standing)
    finally:
        bench.stop()
