"""Crashes and aborts: budgets are never under-counted, and no round is answered twice with other bytes."""

from __future__ import annotations

import os
import signal

import pytest
from harness.rounds_bench import Bench
from harness.stores import accept_inserts, allow_changes, refuse_inserts
from harness.waiting import until
from sqlalchemy import text
from structlog.testing import capture_logs

from equipoise.errors import DataLoss, InvalidArgument, WrongState
from equipoise.model.rounds import RoundState
from equipoise_server.rounds.runner import MAX_STALLS
from equipoise_server.rounds.services import RoundServices
from equipoise_server.rounds.store.results import discard

DATA = "data/shop"


def streams(bench: Bench, round_id: str) -> dict[str, list[bytes]]:
    return {analyst: bench.rounds.analyst_views.results(analyst, round_id, 0, 100) for analyst in ("ann", "bob")}


def stored(bench: Bench) -> list[tuple[str, int, bytes]]:
    """Every message in the store, whether it may be read or not."""
    with bench.store.read() as connection:
        query = "SELECT analyst, sequence, chunk FROM result_chunks ORDER BY analyst, sequence"
        return [(row.analyst, row.sequence, row.chunk) for row in connection.execute(text(query))]


def lose_the_end(bench: Bench) -> None:
    """As if the server had died before the worker's last message: nothing of the run is of use."""
    with bench.store.write() as connection:
        connection.execute(text("UPDATE runs SET complete_time = NULL"))


def kill_worker(rounds: RoundServices, round_id: str) -> None:
    process_id = rounds.views.runner.process_id(round_id)
    assert process_id is not None
    os.kill(process_id, signal.SIGKILL)


def stop_worker(rounds: RoundServices, round_id: str) -> None:
    process_id = rounds.runner.process_id(round_id)
    assert process_id is not None
    os.kill(process_id, signal.SIGSTOP)


def test_a_killed_worker_is_run_again_by_the_operator(bench: Bench) -> None:
    round_id = bench.sealed()
    bench.rounds.lifecycle.run(round_id, "run")
    kill_worker(bench.rounds, round_id)
    assert bench.wait(round_id).phase == "failed: the worker ended with exit code -9"
    assert bench.state(round_id) is RoundState.RUNNING
    with pytest.raises(WrongState, match="has not been computed"):
        bench.rounds.lifecycle.release(round_id, "release")
    reserved = bench.charged()
    bench.rounds.lifecycle.run(round_id, "run again")
    assert bench.wait(round_id).complete
    assert bench.charged() == reserved


@pytest.mark.nightly
def test_a_stopped_worker_is_killed_and_its_run_begun_again_until_an_operator_must_decide(bench: Bench) -> None:
    bench.worker_idle_seconds = 2
    bench.restart()
    round_id = bench.sealed()
    reserved = bench.charged()
    bench.rounds.lifecycle.run(round_id, "run")
    stop_worker(bench.rounds, round_id)
    until(lambda: bench.rounds.runner.progress(round_id) is None)
    bench.rounds.lifecycle.take_over()
    assert bench.wait(round_id).complete
    assert bench.charged() == reserved
    assert bench.rounds.runner.failed == 1
    first = stored(bench)
    lose_the_end(bench)
    bench.restart()
    assert bench.wait(round_id).complete
    assert stored(bench) == first
    stopped = bench.sealed()
    bench.rounds.lifecycle.run(stopped, "run another")
    for stall in range(MAX_STALLS):
        stop_worker(bench.rounds, stopped)
        if stall < MAX_STALLS - 1:
            until(lambda: bench.rounds.runner.progress(stopped) is None)
            bench.rounds.lifecycle.take_over()
    assert bench.wait(stopped).phase == "failed: the worker used no processor time for 2 seconds"
    bench.rounds.lifecycle.take_over()
    assert bench.rounds.runner.process_id(stopped) is None
    assert bench.state(stopped) is RoundState.RUNNING


def test_a_restarted_server_computes_the_same_bytes(bench: Bench) -> None:
    round_id = bench.completed()
    first = stored(bench)
    lose_the_end(bench)
    bench.restart()
    assert bench.state(round_id) is RoundState.RUNNING
    assert bench.wait(round_id).complete
    assert stored(bench) == first
    bench.rounds.lifecycle.release(round_id, "release")
    bench.clock.move(60)
    delivered = streams(bench, round_id)
    assert [chunk for chunks in delivered.values() for chunk in chunks] == [chunk for _, _, chunk in first]
    bench.restart()
    assert streams(bench, round_id) == delivered


def test_what_has_been_completed_is_not_computed_again(bench: Bench) -> None:
    round_id = bench.completed()
    first = stored(bench)
    bench.restart()
    assert bench.rounds.views.runner.process_id(round_id) is None
    assert bench.rounds.views.progress(round_id).complete
    with pytest.raises(WrongState, match="waits for its release"):
        bench.rounds.lifecycle.run(round_id, "again")
    bench.rounds.lifecycle.release(round_id, "release")
    assert stored(bench) == first


def test_a_release_that_fails_half_way_leaves_nothing_released(bench: Bench) -> None:
    round_id = bench.completed()
    before = bench.charged()
    with bench.store.write() as connection:
        refuse_inserts(connection, "journal")
    with pytest.raises(Exception, match="stop"):
        bench.rounds.lifecycle.release(round_id, "release")
    assert bench.state(round_id) is RoundState.RUNNING
    assert bench.charged() == before
    with bench.store.write() as connection:
        assert connection.execute(text("SELECT count(*) FROM rounds WHERE run_id IS NOT NULL")).scalar() == 0
        accept_inserts(connection, "journal")
    assert bench.rounds.lifecycle.release(round_id, "release").state is RoundState.RELEASED


def test_an_abort_before_any_data_were_touched_gives_the_charge_back(bench: Bench) -> None:
    round_id = bench.sealed()
    record = bench.rounds.lifecycle.abort(round_id, "the operator changed their mind", "abort")
    assert record.state is RoundState.ABORTED
    assert bench.charged()[DATA] == (0.0, 0.0)
    assert bench.rounds.analyst_views.get("ann", round_id).abort_reason == "the operator changed their mind"


def test_an_abort_of_a_run_is_charged_in_full(bench: Bench) -> None:
    round_id = bench.sealed()
    bench.rounds.lifecycle.run(round_id, "run")
    process_id = bench.rounds.views.runner.process_id(round_id)
    assert process_id is not None
    bench.rounds.lifecycle.abort(round_id, "too slow", "abort")
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
    spent, committed = bench.charged()[DATA]
    assert spent == committed > 0
    bench.restart()
    assert bench.state(round_id) is RoundState.ABORTED
    assert bench.rounds.views.runner.process_id(round_id) is None
    # An old request answered again neither starts a worker nor moves the round.
    assert bench.rounds.lifecycle.run(round_id, "run").state is RoundState.RUNNING
    assert bench.state(round_id) is RoundState.ABORTED
    assert bench.rounds.views.runner.process_id(round_id) is None


@pytest.mark.full
def test_a_worker_whose_round_is_aborted_before_its_results_are_stored_has_not_failed(bench: Bench) -> None:
    """The abort removes the run in its transaction, and ends the worker only afterwards."""
    round_id = bench.sealed()
    with capture_logs() as logs:
        bench.rounds.lifecycle.run(round_id, "run")
        process_id = bench.rounds.views.runner.process_id(round_id)
        assert process_id is not None
        os.kill(process_id, signal.SIGSTOP)
        with bench.store.write() as connection:
            discard(connection, round_id)
        os.kill(process_id, signal.SIGCONT)
        assert bench.wait(round_id).phase.startswith("failed")
    assert logs == []
    assert bench.rounds.views.runner.failed == 0


def test_closing_ends_the_workers_and_keeps_the_round(bench: Bench) -> None:
    round_id = bench.sealed()
    bench.rounds.lifecycle.run(round_id, "run")
    process_id = bench.rounds.views.runner.process_id(round_id)
    assert process_id is not None
    bench.rounds.lifecycle.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
    assert bench.state(round_id) is RoundState.RUNNING


@pytest.mark.full
def test_a_round_whose_table_is_gone_does_not_stop_the_start(bench: Bench) -> None:
    round_id = bench.completed()
    lose_the_end(bench)
    table = bench.directory / "data" / "shop.csv"
    content = table.read_bytes()
    table.unlink()
    bench.restart()
    assert bench.state(round_id) is RoundState.RUNNING
    with pytest.raises(InvalidArgument, match="source: there is no such file"):
        bench.rounds.lifecycle.run(round_id, "again")
    table.write_bytes(content)
    bench.rounds.lifecycle.run(round_id, "again")
    assert bench.wait(round_id).complete


def test_a_damaged_journal_stops_the_start(bench: Bench) -> None:
    bench.sealed()
    with bench.store.write() as connection:
        allow_changes(connection, "journal")
        connection.execute(text("UPDATE journal SET rho = rho - 1 WHERE action = 'reserve' AND rho > 0"))
    bench.rounds.lifecycle.close()
    bench.store.close()
    bench.start()
    with pytest.raises(DataLoss, match="the budget journal is damaged"):
        bench.rounds.lifecycle.recover()
