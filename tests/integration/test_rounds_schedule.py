"""Rounds that go their way by the clock, across restarts; what keeps them or ends them besides."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest
from harness.rounds_bench import ANN, BOB, SALT, TERMS, Bench
from harness.waiting import PATIENCE, until
from sqlalchemy import text

from equipoise.errors import AlreadyExists, InvalidArgument, NotFound, WrongState
from equipoise.model.rounds import RoundState
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.rounds.datasets import Datasets
from equipoise_server.rounds.records import DatasetRecord, RoundRecord
from equipoise_server.rounds.schedule import NO_BUDGET
from equipoise_server.rounds.state_machine import Action
from equipoise_server.storage.idempotency import Request

DATA = "data/shop"
ANN_BYTES, BOB_BYTES = workload_to_bytes(ANN), workload_to_bytes(BOB)
CLOSE = datetime(2024, 1, 1, 12, 5, tzinfo=UTC)


def scheduled(bench: Bench, **terms: object) -> str:
    """A round that closes at noon and five minutes."""
    return bench.opened(replace(TERMS, close_time=CLOSE, **terms))  # type: ignore[arg-type]


def test_a_round_with_a_closing_time_goes_all_the_way_by_itself(bench: Bench) -> None:
    round_id = scheduled(bench, release_grid_seconds=3600)
    bench.rounds.submissions.submit("ann", round_id, "1", ANN_BYTES, SALT)
    bench.clock.now = CLOSE - timedelta(seconds=1)
    bench.rounds.schedule.keep()
    assert bench.state(round_id) is RoundState.OPEN
    bench.clock.now = CLOSE
    # Late is late, whether or not the server has come to it; and so it looks to analysts.
    with pytest.raises(WrongState, match="no longer accepts"):
        bench.rounds.submissions.submit("bob", round_id, "2", BOB_BYTES, SALT)
    assert bench.rounds.analyst_views.get("ann", round_id).state is RoundState.SEALED
    bench.rounds.schedule.keep()
    assert bench.state(round_id) is RoundState.SEALED
    # Each step is taken once, from the store, also by a server that was started in between.
    bench.restart()
    bench.rounds.schedule.keep()
    assert bench.state(round_id) is RoundState.RUNNING
    assert bench.wait(round_id).complete
    bench.restart()
    bench.rounds.schedule.keep()
    record = bench.rounds.views.get(round_id)
    assert (record.state, record.release_time) == (RoundState.RELEASED, datetime(2024, 1, 1, 13, tzinfo=UTC))
    bench.rounds.schedule.keep()
    with pytest.raises(WrongState):
        bench.rounds.analyst_views.results("ann", round_id, 0, 1)
    bench.clock.now = datetime(2024, 1, 1, 13, tzinfo=UTC)
    assert bench.rounds.analyst_views.results("ann", round_id, 0, 1)
    spent, committed = bench.charged()[DATA]
    assert spent == committed > 0


def test_nobody_learns_at_the_closing_time_that_nobody_has_submitted(bench: Bench) -> None:
    round_id = scheduled(bench)
    bench.clock.now = CLOSE
    bench.rounds.schedule.keep()
    bench.rounds.schedule.keep()
    progress = bench.wait(round_id)
    assert progress.complete, progress.phase
    bench.rounds.schedule.keep()
    assert bench.state(round_id) is RoundState.RELEASED
    bench.clock.move(60)
    with pytest.raises(NotFound, match="there is no such stream"):
        bench.rounds.analyst_views.results("ann", round_id, 0, 1)


def test_a_round_that_no_longer_fits_ends_with_a_public_reason(bench: Bench) -> None:
    round_id = scheduled(bench)
    bench.rounds.submissions.submit("ann", round_id, "1", ANN_BYTES, SALT)
    with bench.store.write() as connection:
        connection.execute(
            text("UPDATE accounts SET committed_divergence = limit_divergence WHERE name = 'data/shop'")
        )
    bench.clock.now = CLOSE
    bench.rounds.schedule.keep()
    record = bench.rounds.analyst_views.get("bob", round_id)
    assert (record.state, record.abort_reason) == (RoundState.ABORTED, NO_BUDGET)


def test_a_table_that_is_looked_at_for_long_keeps_no_other_round_waiting(
    on_sqlite: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = on_sqlite
    slow, other = scheduled(bench), scheduled(bench)
    bench.clock.now = CLOSE
    bench.rounds.schedule.keep()
    looked, may_end, looks = Event(), Event(), Datasets.check_unchanged

    def look(tables: Datasets, dataset: DatasetRecord) -> None:
        if not looked.is_set():
            looked.set()
            assert may_end.wait(PATIENCE)
        looks(tables, dataset)

    def wait_for(*wanted: RoundState) -> None:
        until(lambda: {bench.state(each) for each in (slow, other)} == set(wanted))

    monkeypatch.setattr(Datasets, "check_unchanged", look)
    monkeypatch.setattr(bench.rounds.schedule.slow_steps, "_patience", 0.0)
    bench.rounds.schedule.keep()
    assert looked.wait(PATIENCE)
    wait_for(RoundState.SEALED, RoundState.RUNNING)
    bench.rounds.schedule.keep()  # which does not look again
    may_end.set()
    wait_for(RoundState.RUNNING)
    assert all(bench.wait(each).complete for each in (slow, other))


@pytest.mark.full
def test_a_failed_run_waits_for_the_operator_and_others_go_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = bench.directory / "data" / "shop.csv"
    content = table.read_text()
    failing, other = scheduled(bench), scheduled(bench)
    bench.clock.now = CLOSE
    bench.rounds.schedule.keep()
    table.write_text(content.replace("red", "green", 1))
    # As if the table had changed only after the server had looked at it.
    with monkeypatch.context() as unseen:
        unseen.setattr(Datasets, "check_unchanged", lambda *_: None)
        bench.rounds.schedule.keep()
    assert [bench.wait(each).complete for each in (failing, other)] == [False, False]
    bench.rounds.schedule.keep()
    assert [bench.state(each) for each in (failing, other)] == [RoundState.RUNNING] * 2
    table.write_text(content)
    for round_id in (failing, other):
        bench.rounds.lifecycle.run(round_id, f"run {round_id}")
        assert bench.wait(round_id).complete
    bench.rounds.schedule.keep()
    assert [bench.state(each) for each in (failing, other)] == [RoundState.RELEASED] * 2


def test_a_round_whose_table_is_gone_stays_sealed_until_it_is_back(bench: Bench) -> None:
    table = bench.directory / "data" / "shop.csv"
    content = table.read_text()
    round_id = scheduled(bench)
    bench.clock.now = CLOSE
    bench.rounds.schedule.keep()
    table.unlink()
    bench.rounds.schedule.keep()
    assert bench.state(round_id) is RoundState.SEALED
    table.write_text(content)
    bench.rounds.schedule.keep()
    assert bench.state(round_id) is RoundState.RUNNING


def test_a_round_that_breaks_unexpectedly_keeps_no_other_from_its_steps(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing, other = scheduled(bench), scheduled(bench)
    take = bench.rounds.lifecycle.take

    def broken(request: Request, round_id: str, action: Action, reason: str = "") -> RoundRecord:
        if round_id == failing:
            raise ZeroDivisionError
        return take(request, round_id, action, reason)

    monkeypatch.setattr(bench.rounds.lifecycle, "take", broken)
    bench.clock.now = CLOSE
    bench.rounds.schedule.keep()
    assert [bench.state(each) for each in (failing, other)] == [RoundState.OPEN, RoundState.SEALED]


def test_an_operator_may_be_faster_than_the_clock(bench: Bench) -> None:
    round_id = scheduled(bench)
    bench.rounds.submissions.submit("ann", round_id, "1", ANN_BYTES, SALT)
    bench.rounds.lifecycle.seal(round_id, "seal")
    bench.rounds.schedule.keep()
    assert bench.state(round_id) is RoundState.SEALED
    bench.rounds.lifecycle.abort(round_id, "a public reason", "abort")
    bench.clock.now = CLOSE
    bench.rounds.schedule.keep()
    assert bench.state(round_id) is RoundState.ABORTED
    assert bench.charged()[DATA] == (0.0, 0.0)


def test_times_that_cannot_be_are_refused(bench: Bench) -> None:
    with pytest.raises(InvalidArgument, match="close_time: must be in the future"):
        bench.opened(replace(TERMS, close_time=bench.clock.now))
    with pytest.raises(InvalidArgument, match=r"^release_grid_seconds: "):
        bench.opened(replace(TERMS, release_grid_seconds=604_801))
    opened = bench.rounds.opening.open(replace(TERMS, close_time=CLOSE), "open")
    assert (opened.terms.close_time, opened.terms.release_grid_seconds) == (CLOSE, 60)
    bench.clock.now = CLOSE
    assert bench.rounds.opening.open(replace(TERMS, close_time=CLOSE), "open") == opened
    with pytest.raises(AlreadyExists):
        bench.rounds.opening.open(TERMS, "open")
