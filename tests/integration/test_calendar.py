"""Rounds and grants by the calendar: opened once each, closed, within a yearly budget, also after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from harness.rounds_bench import TERMS, Bench, new_bench

from equipoise.errors import BudgetExhausted, InvalidArgument, NotFound, WrongState
from equipoise.model.accounts import Budget, Danger
from equipoise.model.calendar import Period, RoundSchedule
from equipoise.model.grants import grant_terms
from equipoise.model.rounds import GRANT, RoundState, SessionTerms, Terms
from equipoise_server.sessions.calendar import MISSED, WAITS, Calendar

HOUR, DAY, WEEK = 3_600, 86_400, 7 * 86_400
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
    with pytest.raises(BudgetExhausted, match="yearly_budget: a single opening would exceed"):
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


LARGE = Budget(18.0, 9e-4)  # the data account has no room for two


def grant_of(analyst: str, budget: Budget) -> Terms:
    """A grant whose dangers are accepted."""
    return grant_terms("shop", analyst, budget, None, 0.05, tuple(Danger))


def renewed(bench: Bench, each: Budget, yearly: Budget) -> RoundSchedule:
    """A grant that is given now, and anew every day."""
    return calendar_of(bench).add(grant_of("ann", each), Period.DAILY, None, 0, yearly, "renewed", "olga")


def test_the_first_of_renewed_grants_is_given_at_once_and_counts_in_the_yearly_budget(bench: Bench) -> None:
    each, enough_for_one = Budget(0.2, 1e-6), Budget(0.29, 1e-6)
    begun = renewed(bench, each, enough_for_one)
    assert renewed(bench, each, enough_for_one) == begun  # the same request again
    (first,) = begun.round_ids
    given = bench.rounds.views.get(first)
    assert (given.state, given.terms.close_time) == (RoundState.OPEN, begun.next_time)
    bench.clock.move(DAY)
    calendar_of(bench).keep()
    (schedule,), _ = calendar_of(bench).page()
    assert (schedule.round_ids, "yearly_budget" in schedule.problem) == ((first,), True)


def test_a_first_grant_that_is_refused_stops_its_schedule(on_sqlite: Bench) -> None:
    bench = on_sqlite
    bench.sessions.open(grant_of("bob", LARGE), "nearly all there is", "olga")
    for error in (BudgetExhausted, WrongState):  # the second is the same request again
        with pytest.raises(error, match="no budget left"):
            renewed(bench, LARGE, Budget(500.0, 0.9))
    (schedule,), _ = calendar_of(bench).page()
    assert (schedule.round_ids, schedule.next_time) == ((), None)
    assert "no budget left" in schedule.problem


def test_a_grant_that_follows_waits_for_what_the_one_before_returns(on_sqlite: Bench) -> None:
    bench = on_sqlite
    begun = renewed(bench, LARGE, Budget(500.0, 0.9))
    (first,) = begun.round_ids
    bench.clock.move(DAY)
    calendar_of(bench).keep()
    (waits,), _ = calendar_of(bench).page()
    assert (waits.round_ids, waits.problem, waits.next_time) == ((first,), WAITS, begun.next_time)
    bench.sessions.close(first, "close", "olga")
    bench.rounds.lifecycle.run(first, "run", "olga")
    bench.wait(first)
    bench.rounds.lifecycle.release(first, "release", "olga")
    calendar_of(bench).keep()
    (given,), _ = calendar_of(bench).page()
    second, kept = given.round_ids
    assert (kept, given.problem) == (first, "")
    assert bench.on_data().committed == bench.due(bench.rounds.views.get(second).plan)


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
