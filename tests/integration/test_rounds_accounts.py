"""What rounds take from accounts and datasets, and for how long requests and results are kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from harness.dangers import LARGE_CAPS
from harness.rounds_bench import ANN, BOB, CAP, SALT, SCHEMA, TERMS, Bench
from sqlalchemy import text

from equipoise.errors import AlreadyExists, BudgetExhausted, InvalidArgument, NotFound, WrongState
from equipoise.model.accounts import Budget
from equipoise.model.rounds import RoundState
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.conversion import epsilon_for
from equipoise_server.rounds.dataset_endings import retire_dataset

DATA = "data/shop"


ANN_BYTES, BOB_BYTES = workload_to_bytes(ANN), workload_to_bytes(BOB)


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
