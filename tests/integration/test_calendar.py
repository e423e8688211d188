"""Rounds and grants by the calendar: opened once each, closed, within a yearly budget, also after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from harness.rounds_bench import TERMS, Bench, new_bench

from equipoise.errors import BudgetExhausted, InvalidArgument, NotFound
from equipoise.model.accounts import Budget
from equipoise.model.calendar import Period
from equipoise.model.grants import grant_terms
from equipoise.model.rounds import GRANT, RoundState, SessionTerms, Terms
from equipoise_server.sessions.calendar import MISSED, Calendar

HOUR, WEEK = 3_600, 7 * 86_400
PLAIN = replace(TERMS, mechanism="gaussian", options={})
YEARLY = Budget(19.0, 1e-3)


@pytest.fixture
def bench(tmp_path: Path, store_url: str) -> Iterator[Bench]:
    made = new_bench(tmp_path, store_url, distinct_seeds=True)
    yield made
    made.stop()


def calendar_of(bench: Bench) -> Calendar:
    return Calendar(bench.rounds.operations, bench.rounds.opening, bench.sessions)


def scheduled(bench: Bench, terms: Terms = PLAIN, yearly: Budget = YEARLY, open_seconds: int = HOUR) -> str:
    """A weekly schedule, whose first opening is in an hour."""
    first = bench.clock() + timedelta(hours=1)
    return calendar_of(bench).add(terms, Period.WEEKLY, first, open_seconds, yearly, "weekly", "olga").id


def opened(bench: Bench) -> tuple[str, ...]:
    (schedule,), _ = calendar_of(bench).page()
    return schedule.round_ids


def test_rounds_are_opened_once_each_and_close_also_after_a_restart(bench: Bench) -> None:
    schedule_id = scheduled(bench)
    assert scheduled(bench) == schedule_id  # the same request again
    calendar_of(bench).keep()
    assert opened(bench) == ()
    bench.clock.move(HOUR)
    for _ in range(2):
        calendar_of(bench).keep()
        bench.restart()
    (first,) = opened(bench)
    shown = bench.rounds.views.get(first)
    assert (shown.state, shown.terms.close_time) == (RoundState.OPEN, shown.open_time + timedelta(hours=1))
    assert replace(shown.terms, close_time=None).shares == PLAIN.shares
    bench.clock.move(WEEK)
    calendar_of(bench).keep()
    second, kept = opened(bench)
    assert kept == first != second
    bench.clock.move(2 * WEEK + 2 * HOUR)
    for _ in range(3):
        calendar_of(bench).keep()
    (schedule,), _ = calendar_of(bench).page()
    assert (schedule.round_ids, schedule.problem) == ((second, first), MISSED)
    calendar_of(bench).stop(schedule_id, "stop", "olga")
    bench.clock.move(WEEK - 2 * HOUR)
    calendar_of(bench).keep()
    (stopped,), _ = calendar_of(bench).page()
    assert (stopped.round_ids, stopped.next_time) == ((second, first), None)
    with pytest.raises(NotFound, match="no such schedule"):
        calendar_of(bench).stop("0" * 32, "stop none")


def test_what_exceeds_the_yearly_budget_waits_for_the_next_year(on_sqlite: Bench) -> None:
    bench = on_sqlite
    budget = PLAIN.data_budget
    just = Budget(budget.epsilon * 1.3, budget.delta * 2.5)
    scheduled(bench, yearly=just)
    small = Budget(budget.epsilon / 3, budget.delta)
    with pytest.raises(BudgetExhausted, match="yearly_budget"):
        calendar_of(bench).add(PLAIN, Period.DAILY, bench.clock() + timedelta(days=1), 0, small, "small")
    bench.clock.move(HOUR)
    calendar_of(bench).keep()
    year = bench.clock().year
    (first,) = opened(bench)
    for _ in range(3):
        bench.clock.move(WEEK)
        calendar_of(bench).keep()
        (schedule,), _ = calendar_of(bench).page()
        assert schedule.round_ids == (first,)
        assert "none is opened before the next year" in schedule.problem
    weeks = 0
    while bench.clock().year == year:
        bench.clock.move(WEEK)
        weeks += 1
        calendar_of(bench).keep()
    assert len(opened(bench)) == 2
    assert weeks > 1


def test_a_grant_is_given_anew_each_time_until_the_next(on_sqlite: Bench) -> None:
    bench = on_sqlite
    scheduled(bench, grant_terms("shop", "ann", Budget(0.2, 1e-6), None, 0.05), open_seconds=0)
    bench.clock.move(HOUR)
    calendar_of(bench).keep()
    (grant_id,) = opened(bench)
    given = bench.rounds.views.get(grant_id)
    assert (given.mechanism, given.state) == (GRANT, RoundState.OPEN)
    assert given.terms.close_time == given.open_time + timedelta(days=7)
    assert bench.on_data().committed == bench.due(given.plan)


def test_a_schedule_that_cannot_be_kept_is_refused(on_sqlite: Bench) -> None:
    bench = on_sqlite
    now = bench.clock()
    soon = now + timedelta(days=1)
    session = replace(PLAIN, session=SessionTerms(turn_seconds=10))
    for field, terms, first, seconds in (
        ("first_time", PLAIN, now, 0),
        ("close_time", replace(PLAIN, close_time=soon), soon, 0),
        ("turn_seconds", session, soon, 0),
        ("open_seconds", PLAIN, soon, WEEK + 1),
        ("mechanism", replace(PLAIN, mechanism="none"), soon, 0),
    ):
        with pytest.raises(InvalidArgument, match=field):
            calendar_of(bench).add(terms, Period.WEEKLY, first, seconds, YEARLY, f"wrong {field}")
    assert calendar_of(bench).page() == ([], "")
