"""Rounds that go their way by the clock, across restarts; what operators and analysts may do besides."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest
from harness.dangers import LARGE_CAPS
from harness.rounds_bench import ANN, BOB, CAP, SALT, SCHEMA, TERMS, Bench
from harness.waiting import PATIENCE, until
from sqlalchemy import text

from equipoise.errors import AlreadyExists, BudgetExhausted, InvalidArgument, NotFound, WrongState
from equipoise.model.accounts import Budget
from equipoise.model.rounds import RoundState
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.conversion import epsilon_for
from equipoise_server.rounds.dataset_endings import retire_dataset
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


def test_a_workload_can_be_withdrawn_until_the_round_is_sealed(bench: Bench) -> None:
    round_id = bench.opened()
    with pytest.raises(NotFound, match="you have submitted no workload"):
        bench.rounds.submissions.withdraw("ann", round_id, "0")
    bench.rounds.submissions.submit("ann", round_id, "1", ANN_BYTES, SALT)
    bench.rounds.submissions.submit("bob", round_id, "1", BOB_BYTES, SALT)
    bench.rounds.submissions.withdraw("ann", round_id, "2")
    bench.restart()
    bench.rounds.submissions.withdraw("ann", round_id, "2")
    with pytest.raises(AlreadyExists):
        bench.rounds.submissions.withdraw("ann", bench.opened(), "2")
    with pytest.raises(NotFound, match="there is no such round"):
        bench.rounds.submissions.withdraw("cyd", round_id, "1")
    bench.rounds.lifecycle.seal(round_id, "seal")
    with pytest.raises(WrongState):
        bench.rounds.submissions.withdraw("bob", round_id, "3")
    bench.rounds.lifecycle.run(round_id, "run")
    assert bench.wait(round_id).complete
    bench.rounds.lifecycle.release(round_id, "release")
    bench.clock.move(60)
    assert bench.rounds.analyst_views.results("bob", round_id, 0, 1)
    with pytest.raises(NotFound, match="there is no such stream"):
        bench.rounds.analyst_views.results("ann", round_id, 0, 1)


def test_a_retired_dataset_takes_no_new_rounds_and_keeps_its_name(bench: Bench) -> None:
    round_id = bench.sealed()
    retired = retire_dataset(bench.rounds.operations, "shop", "retire", "olga")
    assert retired.retire_time == bench.clock.now
    bench.restart()
    assert retire_dataset(bench.rounds.operations, "shop", "retire", "olga") == retired
    for refused in (lambda: bench.rounds.opening.plan(TERMS), bench.opened):
        with pytest.raises(WrongState, match="the dataset is retired"):
            refused()
    with pytest.raises(WrongState, match="already retired"):
        retire_dataset(bench.rounds.operations, "shop", "again")
    with pytest.raises(NotFound):
        retire_dataset(bench.rounds.operations, "other", "other")
    # A new registration under the name would have a new budget.
    with pytest.raises(AlreadyExists):
        bench.rounds.datasets.register("shop", "shop.csv", SCHEMA, CAP, CAP, "anew", accepted=LARGE_CAPS)
    bench.rounds.lifecycle.run(round_id, "run")
    assert bench.wait(round_id).complete
    assert bench.rounds.lifecycle.release(round_id, "release").state is RoundState.RELEASED


def test_caps_are_set_once_and_shown_in_the_history(bench: Bench) -> None:
    round_id = bench.sealed()
    ann = "analyst/shop/query/ann"
    changed = bench.rounds.budgets.set_cap(ann, Budget(30.0, 1e-3), "cap", "olga", LARGE_CAPS)
    assert changed.cap == Budget(30.0, 1e-3)
    bench.rounds.lifecycle.abort(round_id, "a public reason", "abort")
    bench.restart()
    assert bench.rounds.budgets.set_cap(ann, Budget(30.0, 1e-3), "cap", "olga", LARGE_CAPS) == changed
    with pytest.raises(AlreadyExists):
        bench.rounds.budgets.set_cap(ann, Budget(31.0, 1e-3), "cap", "olga", LARGE_CAPS)
    with pytest.raises(NotFound):
        bench.rounds.budgets.set_cap("data/other", Budget(1.0, 1e-3), "x")
    for wrong in (Budget(0.0, 1e-3), Budget(1.0, 0.0), Budget(float("nan"), 1e-3)):
        with pytest.raises(InvalidArgument, match=r"^cap\."):
            bench.rounds.budgets.set_cap(ann, wrong, "x")
    entries, token = bench.rounds.budgets.history(ann)
    assert ([entry.action for entry in entries], token) == (["open-account", "reserve", "set-cap", "release"], "")
    first, token = bench.rounds.budgets.history(ann, 1)
    assert [*first, *bench.rounds.budgets.history(ann, 5, token)[0]] == entries
    with pytest.raises(NotFound, match="there is no such account"):
        bench.rounds.budgets.history("data/other")


def test_rounds_that_protect_whole_analysts_add_up_until_the_cap(bench: Bench) -> None:
    whole, name = replace(TERMS, unit="analyst"), "analyst/shop/analyst/bob"

    rounds = []

    def seal() -> None:
        round_id = bench.opened(whole)
        bench.rounds.submissions.submit("ann", round_id, round_id, ANN_BYTES, SALT)
        bench.rounds.lifecycle.seal(round_id, f"seal {round_id}")
        rounds.append(round_id)

    seal()
    one = bench.charged()[name][1]
    seal()
    assert one < bench.charged()[name][1] <= CAP.epsilon
    # Three times the cost does not fit, so the cap is what refuses, by the account's own name.
    bench.rounds.budgets.set_cap(name, Budget(bench.needed(name), CAP.delta), "cap", accepted=LARGE_CAPS)
    with pytest.raises(BudgetExhausted, match=f"account {name}: "):
        seal()
    bench.rounds.budgets.set_cap(name, CAP, "cap again", accepted=LARGE_CAPS)
    # Each statement was protected by the same rounds: on the account of statements the worst of both counts.
    statements = "analyst/shop/query/bob"
    assert bench.charged()[statements][1] == pytest.approx(cost_alone(bench, rounds[0]))
    both = bench.charged()[name]
    # A round with unit = query promises nothing for all that bob asks, and is on the account of statements alone.
    other = bench.sealed(replace(TERMS, analyst_budget=Budget(4.0, 1e-4)))
    assert bench.charged()[name] == both
    assert cost_alone(bench, other) < cost_alone(bench, rounds[0]) == bench.charged()[statements][1]
    for each in rounds:
        bench.rounds.lifecycle.abort(each, "a public reason", f"abort {each}")
    assert bench.charged()[name] == (0.0, 0.0)
    assert bench.charged()[statements][1] == cost_alone(bench, other)
    bench.rounds.lifecycle.abort(other, "a public reason", "abort")
    assert bench.charged()[statements] == (0.0, 0.0)


def cost_alone(bench: Bench, round_id: str) -> float:
    """The epsilon that a round costs its analysts by itself, at the cap's delta."""
    return epsilon_for(bench.rounds.views.get(round_id).plan.charged_analyst_cost, CAP.delta)


def test_a_round_that_protects_analysts_is_refused_where_it_is_too_much_for_a_statement(bench: Bench) -> None:
    whole, statements = replace(TERMS, unit="analyst"), "analyst/shop/query/bob"
    first = bench.opened(whole)
    with pytest.raises(WrongState, match=f"what the 1 open rounds of this account .*{first}"):
        bench.rounds.budgets.set_cap(statements, Budget(1.0, CAP.delta), "too small for what is open")
    bench.rounds.lifecycle.abort(first, "a public reason", "abort")
    bench.rounds.budgets.set_cap(statements, Budget(1.0, CAP.delta), "small")
    with pytest.raises(BudgetExhausted, match=f"account {statements}: "):
        bench.opened(whole)


@pytest.mark.full
def test_results_are_kept_for_as_long_as_is_configured(bench: Bench) -> None:
    round_id = bench.released().id
    bench.clock.move(29 * 86_400)
    bench.rounds.schedule.keep()
    assert bench.rounds.analyst_views.results("ann", round_id, 0, 1)
    bench.clock.move(86_400)
    bench.rounds.schedule.keep()
    with pytest.raises(WrongState, match="no longer kept"):
        bench.rounds.analyst_views.results("ann", round_id, 0, 1)
    with bench.store.read() as connection:
        for table in ("result_chunks", "synopses", "runs"):
            assert connection.execute(text(f"SELECT count(*) FROM {table}")).scalar() == 0
    assert bench.charged()[DATA][0] > 0
    assert bench.state(round_id) is RoundState.RELEASED


def test_a_request_is_forgotten_after_a_week_and_its_rows_are_removed(bench: Bench) -> None:
    round_id = bench.opened(TERMS)
    bench.rounds.submissions.submit("ann", round_id, "1", ANN_BYTES, SALT)
    with pytest.raises(AlreadyExists):
        bench.rounds.submissions.submit("ann", round_id, "1", BOB_BYTES, SALT)
    bench.clock.move(timedelta(days=7).total_seconds())
    bench.rounds.schedule.keep()
    with pytest.raises(AlreadyExists):
        bench.rounds.submissions.submit("ann", round_id, "1", BOB_BYTES, SALT)
    bench.clock.move(1)
    bench.rounds.schedule.keep()
    with bench.store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM requests")).scalar_one() == 0
    bench.rounds.submissions.submit("ann", round_id, "1", BOB_BYTES, SALT)
