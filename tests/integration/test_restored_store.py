"""A backup of yesterday over today: refused with the reason, and repaired as the runbook says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.rounds_bench import CAP, KEY, SCHEMA, Bench, write_table
from integration.server_process import make_state
from integration.test_server_life import command
from stores import back_up, restore

from equipoise.errors import DataLoss, WrongState
from equipoise_server.ledger.guard import Finding
from equipoise_server.rounds.clock import system_clock
from equipoise_server.rounds.restoring import RESTORED, write_off_losses
from equipoise_server.rounds.service import Rounds
from equipoise_server.rounds.states import RoundState
from equipoise_server.state import open_deployment
from equipoise_server.storage.crash_points import CrashPoint, told

DATA = "data/shop"


@pytest.fixture
def bench(tmp_path: Path, store_url: str) -> Iterator[Bench]:
    bench = Bench(tmp_path, store_url)
    yield bench
    bench.stop()


def backed_up(bench: Bench) -> str:
    """The URL of a copy of the store as it is now."""
    bench.stop()
    copy = back_up(bench.url)
    bench.start()
    bench.rounds.recover()
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
    bench.rounds.run(waiting, "run")
    bench.wait(waiting)
    bench.rounds.release(waiting, "release")
    bench.released()
    spent = bench.charged()
    restored(bench, copy)
    with pytest.raises(DataLoss, match="restored from an older copy"):
        bench.rounds.recover()
    assert bench.charged()[DATA][0] == 0
    done = write_off_losses(bench.store, bench.guard, bench.clock())
    assert (done.finding, done.aborted) == (Finding.BEHIND, [waiting])
    bench.rounds.recover()
    # Nothing is under-counted; the round's seed is never used again.
    assert {name: amounts[0] for name, amounts in bench.charged().items()} == {
        name: amounts[0] for name, amounts in spent.items()
    }
    record = bench.rounds.get(waiting)
    assert (record.state, record.abort_reason) == (RoundState.ABORTED, RESTORED)
    with pytest.raises(WrongState):
        bench.rounds.run(waiting, "run once more")
    assert write_off_losses(bench.store, bench.guard, bench.clock()).finding is Finding.CONTAINED
    bench.restart()
    bench.released()


def test_a_backup_from_before_a_run_cannot_give_its_charge_back(bench: Bench) -> None:
    """Between sealing and running nothing is charged anew, but an abort would give the whole charge back."""
    waiting = bench.sealed()
    copy = backed_up(bench)
    bench.rounds.run(waiting, "run")
    restored(bench, copy)
    with pytest.raises(DataLoss, match="restored from an older copy"):
        bench.rounds.recover()
    # A server that did not look at its start is stopped by its first step.
    with pytest.raises(DataLoss, match="went another way"):
        bench.rounds.abort(waiting, "a public reason", "abort")


@pytest.mark.parametrize("point", [CrashPoint.WRITE_OFF_WRITTEN, CrashPoint.WRITE_OFF_COMMITTED])
def test_a_write_off_that_is_cut_off_counts_nothing_twice(bench: Bench, point: CrashPoint) -> None:
    copy = backed_up(bench)
    bench.released()
    spent = bench.charged()[DATA]
    restored(bench, copy)

    def crash(reached: CrashPoint) -> None:
        if reached is point:
            raise KeyboardInterrupt

    with told(crash), pytest.raises(KeyboardInterrupt):
        write_off_losses(bench.store, bench.guard, bench.clock())
    write_off_losses(bench.store, bench.guard, bench.clock())
    bench.rounds.recover()
    assert bench.charged()[DATA] == spent


def test_the_commands_refuse_say_why_and_repair(tmp_path: Path) -> None:
    state = make_state(tmp_path / "state")
    write_table(state / "data")
    shutil.copy(state / "equipoise.db", tmp_path / "backup")
    deployment = open_deployment(state, system_clock())
    store = deployment.open_store()
    rounds = Rounds(store, state / "data", KEY, guard=deployment.guard)
    rounds.register_dataset("shop", "shop.csv", SCHEMA, CAP, CAP, "register")
    rounds.close()
    store.close()
    arguments = ("--state", str(state))
    verified = command("ledger", "verify", *arguments, "--json")
    assert (json.loads(verified.stdout)["entries"], json.loads(verified.stdout)["accounts"]) == (1, 1)
    for path in state.glob("equipoise.db*"):
        path.unlink()
    shutil.copy(tmp_path / "backup", state / "equipoise.db")
    for words in (("serve",), ("check",)):
        refused = command(*words, *arguments)
        assert refused.returncode == 1
        assert "the store was restored from an older copy" in refused.stderr
        assert "equipoise-server ledger write-off" in refused.stderr
        assert "Traceback" not in refused.stderr
    repaired = command("ledger", "write-off", *arguments, "--json")
    assert json.loads(repaired.stdout) == {"finding": "behind", "written_off": [], "aborted": []}, repaired.stderr
    assert command("check", *arguments).returncode == 0
    (state / "guard").unlink()
    gone = command("check", *arguments)
    assert (gone.returncode, "is missing" in gone.stderr) == (1, True)
    assert "There was no guard" in command("ledger", "write-off", *arguments).stdout
    assert command("ledger", "verify", *arguments).returncode == 0
