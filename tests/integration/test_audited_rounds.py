"""Every way that rounds can end, and every way that accounts can count, as the checks of an audit see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from harness.audited_rounds import audited, problems
from harness.dangers import LARGE_CAPS
from harness.rounds_bench import TERMS, Bench, new_bench
from harness.stores import sqlite_url

from equipoise.model.accounts import Budget
from equipoise_server.rounds.analyst_deletion import delete_analyst
from equipoise_server.rounds.new_datasets import AccountingMethod
from equipoise_server.rounds.terms import checks

NOISE = replace(TERMS, mechanism="gaussian", options={})


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = new_bench(tmp_path, sqlite_url(tmp_path), distinct_seeds=True)
    yield made
    made.stop()


@pytest.mark.nightly
def test_rounds_of_every_end_are_in_order(bench: Bench) -> None:
    bench.rounds.lifecycle.abort(bench.opened(), "not wanted", "first")
    bench.rounds.lifecycle.abort(bench.sealed(), "not wanted", "second")
    bench.rounds.budgets.set_cap("data/shop", Budget(30.0, 1e-3), "cap", accepted=LARGE_CAPS)
    bench.rounds.lifecycle.abort(bench.completed(NOISE), "not wanted", "third")
    waiting = bench.completed()
    bench.rounds.lifecycle.release(waiting, "release")
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
    delete_analyst(bench.rounds.operations, "ann", "delete")
    audit = audited(bench)
    assert problems(audit) == []
    removed, raised, named, changed = audit.remarks
    assert "was registered with the danger epsilon" in named
    assert "data/shop got a cap with the danger epsilon" in changed
    assert removed.endswith("items of deleted analysts are left as hashes only")
    assert raised.endswith("the cap of data/shop was set to epsilon 30 at delta 0.001")


def test_accounts_of_one_order_are_in_order(tmp_path: Path) -> None:
    bench = Bench(tmp_path, f"sqlite:///{tmp_path / 'equipoise.db'}", accounting=AccountingMethod(0, 0))
    try:
        bench.sealed(replace(TERMS, unit="analyst"))
        audit = audited(bench)
        assert problems(audit) == []
        assert {each.name: each.committed_epsilon for each in audit.standing} == pytest.approx(
            {name: committed for name, (_, committed) in bench.charged().items()}
        )
        assert {each.name for each in audit.standing if each.order is None} == {
            f"analyst/shop/query/{share.analyst}" for share in TERMS.shares
        }
    finally:
        bench.stop()


def test_an_audit_finds_a_round_that_is_not_counted_for_the_statements_it_protects(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "COUNTED_FOR", {"query": ("query",), "analyst": ("analyst",)})
    bench.sealed(replace(TERMS, unit="analyst"))
    (problem,) = problems(audited(bench))
    assert problem.startswith("A9: ")
    assert problem.endswith("it charges other accounts than the data's and those of its shares")
