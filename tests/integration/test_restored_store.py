"""A backup of yesterday over today: refused with the reason, and repaired as the runbook says."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from harness.audited_rounds import audited, problems
from harness.dangers import LARGE_CAPS
from harness.rounds_bench import TERMS, Bench, new_bench
from harness.stores import back_up, restore, sqlite_file
from sqlalchemy import select

from equipoise.errors import BudgetExhausted, DataLoss, WrongState
from equipoise.model.accounts import Budget
from equipoise.model.rounds import RoundState
from equipoise_server.ledger.guard_comparison import Finding
from equipoise_server.rounds.recovery import RESTORED, write_off_losses
from equipoise_server.storage.tables.round import runs
from equipoise_server.storage.tables.transparency import checkpoints
from equipoise_server.transparency import keys, log

DATA = "data/shop"


def backed_up(bench: Bench) -> str:
    """The URL of a copy of the store as it is now."""
    bench.stop()
    copy = back_up(bench.url)
    bench.start()
    bench.rounds.lifecycle.recover()
    return copy


def restored(bench: Bench, copy: str) -> None:
    """The copy is in the store's place, and a server opens it."""
    bench.stop()
    restore(bench.url, copy)
    bench.start()


def test_what_was_spent_since_the_backup_is_written_off(bench: Bench) -> None:
    waiting = bench.sealed()
    copy = backed_up(bench)
    # Since then: the sealed round was answered, and another one, too.
    bench.rounds.lifecycle.run(waiting, "run")
    bench.wait(waiting)
    bench.rounds.lifecycle.release(waiting, "release")
    bench.released()
    spent = bench.charged()
    restored(bench, copy)
    with pytest.raises(DataLoss, match="restored from an older copy"):
        bench.rounds.lifecycle.recover()
    assert bench.charged()[DATA][0] == 0
    done = write_off_losses(bench.store, bench.guard, bench.signer, bench.clock())
    assert (done.finding, done.aborted) == (Finding.BEHIND, [waiting])
    bench.rounds.lifecycle.recover()
    # Nothing is under-counted; the round's seed is never used again.
    assert {name: amounts[0] for name, amounts in bench.charged().items()} == {
        name: amounts[0] for name, amounts in spent.items()
    }
    record = bench.rounds.views.get(waiting)
    assert (record.state, record.abort_reason) == (RoundState.ABORTED, RESTORED)
    with pytest.raises(WrongState):
        bench.rounds.lifecycle.run(waiting, "run once more")
    assert write_off_losses(bench.store, bench.guard, bench.signer, bench.clock()).finding is Finding.CONTAINED
    bench.restart()
    bench.released()


@pytest.mark.full
def test_an_audit_finds_nothing_wrong_with_a_repair(tmp_path: Path, store_url: str) -> None:
    """A round was open when the copy was made, one was sealed, one ran, and all three went on afterwards."""
    bench = new_bench(tmp_path, store_url, distinct_seeds=True)
    waiting = [bench.opened(), bench.sealed(), bench.completed()]
    copy = backed_up(bench)
    bench.rounds.lifecycle.run(waiting[1], "run")
    bench.wait(waiting[1])
    for round_id in waiting[1:]:
        bench.rounds.lifecycle.release(round_id, f"release {round_id}")
    restored(bench, copy)
    done = write_off_losses(bench.store, bench.guard, bench.signer, bench.clock())
    assert (done.finding, done.aborted) == (Finding.BEHIND, waiting)
    bench.rounds.lifecycle.recover()
    assert problems(audited(bench)) == []
    bench.stop()


def test_without_a_guard_nothing_is_left_on_accounts_that_the_copy_does_not_have(bench: Bench) -> None:
    whole = replace(TERMS, unit="analyst")
    copy = backed_up(bench)
    bench.released(whole)
    restored(bench, copy)
    bench.guard.path.unlink()
    assert write_off_losses(bench.store, bench.guard, bench.signer, bench.clock()).finding is Finding.MISSING
    bench.rounds.lifecycle.recover()
    # Whoever knows better raises a cap, and only that one.
    for account in (DATA, "analyst/shop/analyst/ann"):
        bench.rounds.budgets.set_cap(account, Budget(40.0, 2e-3), f"raise {account}", accepted=LARGE_CAPS)
    with pytest.raises(BudgetExhausted, match="account analyst/shop/analyst/bob"):
        bench.opened(whole)
    bench.rounds.budgets.set_cap("analyst/shop/analyst/bob", Budget(40.0, 2e-3), "raise bob", accepted=LARGE_CAPS)
    bench.opened(whole)


def test_a_backup_from_before_a_run_cannot_give_its_charge_back(bench: Bench) -> None:
    """Between sealing and running nothing is charged anew, but an abort would give the whole charge back."""
    waiting = bench.sealed()
    copy = backed_up(bench)
    bench.rounds.lifecycle.run(waiting, "run")
    restored(bench, copy)
    with pytest.raises(DataLoss, match="restored from an older copy"):
        bench.rounds.lifecycle.recover()
    # A server that did not look at its start is stopped by its first step.
    with pytest.raises(DataLoss, match="went another way"):
        bench.rounds.lifecycle.abort(waiting, "a public reason", "abort")


def test_a_copy_restored_under_a_running_server_stops_it_before_data_are_touched(tmp_path: Path) -> None:
    """By SQLite's own means, which a running server does not notice by itself; PostgreSQL lets nobody do that."""

    def copied(source: Path, target: Path) -> None:
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
            old.backup(new)

    with sqlite_file(tmp_path) as url:
        bench = Bench(tmp_path, url)
        store, copy = tmp_path / "equipoise.db", tmp_path / "copy"
        waiting = bench.sealed()
        copied(store, copy)
        later = bench.sealed()
        bench.rounds.lifecycle.abort(later, "a test", "abort")
        copied(copy, store)
        for step in (
            bench.opened,
            lambda: bench.rounds.lifecycle.run(waiting, "run"),
            lambda: bench.rounds.budgets.set_cap(DATA, Budget(40.0, 2e-3), "raise", accepted=LARGE_CAPS),
            bench.rounds.operations.remember,
        ):
            with pytest.raises(DataLoss, match=r"restored from an older copy|went another way"):
                step()
        # Nor does it begin what is running by the copy: beginning is where data are read.
        bench.rounds.lifecycle.take_over()
        with bench.store.read() as connection:
            assert connection.execute(select(runs)).all() == []
        bench.stop()


def test_where_only_the_log_has_gone_on_it_goes_on_beyond_what_was_shown(bench: Bench) -> None:
    """A key was added since the backup: no budget moved, no request was answered."""
    bench.rounds.schedule.keep()
    copy = backed_up(bench)
    spent = bench.charged()
    for _ in range(3):
        with bench.store.write() as connection:
            keys.add(connection, bench.signer.make_key(bench.clock()))
    bench.clock.move(1)
    bench.rounds.schedule.keep()
    with bench.store.read() as connection:
        shown = log.signed_head(connection)
    restored(bench, copy)
    with pytest.raises(DataLoss, match=r"the log has 5 entries, but had 8 .* older copy"):
        bench.rounds.lifecycle.recover()
    done = write_off_losses(bench.store, bench.guard, bench.signer, bench.clock())
    assert (done.finding, done.written_off, done.lost_records) == (Finding.BEHIND, [], 4)
    bench.rounds.lifecycle.recover()
    bench.rounds.schedule.keep()
    with bench.store.read() as connection:
        sizes = {row.size: row.root for row in connection.execute(select(checkpoints))}
        went_on = log.signed_head(connection)
        log.check_log(connection)
    assert shown is not None
    assert went_on is not None
    # The size that was shown, and those in between, never have another root.
    assert (shown.size, sorted(sizes)) == (8, [5, 9])
    assert went_on.size == 9
    assert bench.charged() == spent
    bench.opened()
