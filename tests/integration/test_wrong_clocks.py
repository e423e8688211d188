"""A clock that steps by a year and back: nothing that cannot be undone is done while it is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from harness.audited_rounds import audited, problems
from harness.rounds_bench import ANN, SALT, TERMS
from harness.session_terms import ASKED, BY_TURNS, ONLINE, answered, ask, attached
from harness.waiting import PATIENCE, until
from harness.wrong_clocks import YEAR, Machine, machine_on

from equipoise.errors import Unavailable
from equipoise.model.rounds import RoundState
from equipoise.wire.statements import statement_to_bytes
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.rounds import clock_watch

CLOSE = datetime(2024, 1, 2, tzinfo=UTC)


@pytest.fixture
def machine(tmp_path: Path, store_url: str) -> Iterator[Machine]:
    with machine_on(tmp_path, store_url) as made:
        yield made


def test_a_clock_that_steps_by_a_year_and_back_loses_nothing(machine: Machine) -> None:
    bench = machine.bench
    released = bench.released()
    machine.passes(timedelta(seconds=60))
    waiting = bench.opened(replace(TERMS, close_time=CLOSE))
    bench.rounds.submissions.submit("ann", waiting, "1", workload_to_bytes(ANN), SALT)
    complete = bench.completed()
    before, results = machine.held(), bench.rounds.analyst_views.results("ann", released.id, 0, 10)
    for _ in range(3):
        machine.steps(YEAR)
        assert not machine.trusted()
        # A release by hand would open its streams a year from now.
        with pytest.raises(
            Unavailable, match=r"the server's clock says 2024-12-31 .* but 2024-01-01 .* was expected"
        ):
            bench.rounds.lifecycle.release(complete, "release")
        # The seal's time tells auditors who could take part.
        with pytest.raises(Unavailable, match=r"the server's clock says 2024-12-31"):
            bench.rounds.lifecycle.seal(waiting, "seal")
        machine.steps(-YEAR)
        assert machine.trusted()
    # A server that is started while the clock is wrong has the store's word for it.
    bench.clock.now += YEAR
    bench.restart()
    bench.rounds.schedule.keep()
    assert not machine.trusted()
    machine.steps(-YEAR)
    assert machine.trusted()
    assert machine.held() == before
    assert bench.rounds.analyst_views.results("ann", released.id, 0, 10) == results
    assert [bench.state(each) for each in (waiting, complete)] == [RoundState.OPEN, RoundState.RUNNING]
    assert bench.rounds.lifecycle.release(complete, "release").state is RoundState.RELEASED
    # By a clock that is right, all goes on as it was due.
    machine.passes(timedelta(days=2))
    assert bench.state(waiting) is not RoundState.OPEN
    machine.passes(timedelta(days=40))
    after = machine.held()
    assert (after["result_chunks"], after["sealed_seeds"]) == (0, 1)
    assert after["requests"] < before["requests"]


def test_no_turn_is_lost_and_no_answer_delayed_by_a_clock_that_steps_and_back(machine: Machine) -> None:
    bench, begin = machine.bench, machine.bench.clock.now
    session_id = bench.sessions.open(BY_TURNS, "open").id
    stream = attached(bench, "ann", session_id)
    waiting = stream.ask(1, statement_to_bytes(ASKED["ann"][0]))
    for step in (YEAR, -YEAR):
        machine.steps(step)
        for ended in (waiting, stream.ended):
            with pytest.raises(Unavailable, match="clock is not trusted"):
                ended.result(PATIENCE)
        bench.sessions.loops.look_after()
        assert bench.sessions.loops.process_id(session_id) is None
        with pytest.raises(Unavailable, match="clock is not trusted"):
            attached(bench, "ann", session_id)
        machine.steps(-step)
        # Its worker is there again before anybody asks.
        bench.sessions.loops.look_after()
        assert bench.sessions.loops.process_id(session_id) is not None
        stream = attached(bench, "ann", session_id)
        waiting = stream.ask(1, statement_to_bytes(ASKED["ann"][0]))
    assert answered(bench) == []
    machine.passes(timedelta(seconds=10))
    until(lambda: len(answered(bench)) == 1)
    machine.passes(timedelta(seconds=10))
    told = waiting.result(PATIENCE)
    assert (told.slot, told.due) == (0, begin + timedelta(seconds=20))


@pytest.mark.parametrize("back", [timedelta(minutes=30), YEAR])
def test_answers_that_were_told_at_once_are_still_told_when_the_clock_was_set_back(
    machine: Machine, back: timedelta
) -> None:
    """Else the analyst, who has their receipts, would take the custodian for one who forgets answers."""
    bench = machine.bench
    session_id = bench.sessions.open(ONLINE, "open").id
    first = ask(attached(bench, "ann", session_id), 1, ASKED["ann"][0])
    if back == YEAR:
        machine.steps(YEAR)
        with pytest.raises(Unavailable, match="clock is not trusted"):
            attached(bench, "ann", session_id)
    machine.steps(-back)
    stream = attached(bench, "ann", session_id)
    assert stream.answered == 1
    assert stream.stored(0, 10) == [first]
    assert ask(stream, 2, ASKED["ann"][1]).sequence == 2


def test_no_receipt_has_the_time_of_a_wrong_clock(machine: Machine) -> None:
    """All later receipts of the analyst would have later times, by which its certificate has long ended."""
    bench, workload = machine.bench, workload_to_bytes(ANN)
    round_id = bench.opened(replace(TERMS, close_time=CLOSE))
    submissions = bench.rounds.submissions
    machine.steps(YEAR)
    for refused in (
        lambda: submissions.submit("ann", round_id, "1", workload, SALT),
        lambda: submissions.dry_run("ann", round_id, workload),
    ):
        with pytest.raises(Unavailable, match="clock is not trusted"):
            refused()
    machine.steps(-YEAR)
    assert submissions.submit("ann", round_id, "1", workload, SALT).accept_time == bench.clock.now
    machine.steps(YEAR)
    with pytest.raises(Unavailable, match="clock is not trusted"):
        submissions.withdraw("ann", round_id, "2")
    # What was accepted before is told again.
    assert submissions.submit("ann", round_id, "1", workload, SALT).accept_time == bench.clock.now - YEAR


def test_a_clock_that_is_confirmed_is_believed_and_what_is_due_is_done(machine: Machine) -> None:
    bench = machine.bench
    bench.released()
    machine.passes(timedelta(seconds=60))
    machine.steps(YEAR)
    before = machine.held()
    assert before["result_chunks"] > 0
    with bench.store.write() as connection:
        clock_watch.confirm(connection, bench.clock.now)
    machine.passes(timedelta(seconds=1))
    assert machine.trusted()
    assert machine.held() == {"result_chunks": 0, "sealed_seeds": 0, "requests": 0}


def test_a_round_that_was_open_when_a_clock_was_set_back_and_confirmed_passes_the_audit(machine: Machine) -> None:
    """By its times the round was sealed before it was opened. The log says that the clock was confirmed."""
    bench = machine.bench
    waiting = bench.opened()
    bench.rounds.submissions.submit("ann", waiting, "1", workload_to_bytes(ANN), SALT)
    machine.passes(timedelta(seconds=1))
    machine.steps(timedelta(hours=-6))
    with pytest.raises(Unavailable, match="was expected"):
        bench.rounds.lifecycle.seal(waiting, "seal")
    with bench.store.write() as connection:
        clock_watch.confirm(connection, bench.clock.now)
    machine.passes(timedelta(seconds=1))
    bench.rounds.lifecycle.seal(waiting, "seal")
    audit = audited(bench)
    assert problems(audit) == []
    (remark,) = [each for each in audit.remarks if "clock-confirmed" in each]
    assert "the server's clock was confirmed at 2024-01-01 06:00" in remark


@pytest.mark.parametrize(
    ("retention", "days", "trusted"),
    [(30, 6.9, True), (30, 7.1, False), (30, -0.01, True), (30, -0.1, False), (1, 0.9, True), (1, 1.1, False)],
)
def test_at_its_start_a_server_believes_a_clock_that_went_on_for_a_week_or_as_long_as_results_are_kept(
    machine: Machine, retention: int, days: float, trusted: bool
) -> None:
    machine.bench.retention_days = retention
    machine.passes(timedelta(seconds=1))
    machine.bench.clock.now += timedelta(days=days)
    machine.bench.restart()
    assert machine.trusted() == trusted


@pytest.mark.sparse(7)
@pytest.mark.thin(4)
@pytest.mark.parametrize(("minutes", "trusted"), [(59, True), (61, False), (-59, True), (-61, False)])
def test_a_running_server_believes_steps_of_an_hour_at_most_taken_together(
    machine: Machine, minutes: int, trusted: bool
) -> None:
    machine.passes(timedelta(seconds=1))
    machine.passes(timedelta(days=100))
    assert machine.trusted()
    for _ in range(minutes if minutes > 0 else -minutes):
        machine.steps(timedelta(minutes=1 if minutes > 0 else -1))
    assert machine.trusted() == trusted
    machine.passes(timedelta(days=1))
    assert machine.trusted() == trusted


def test_a_copy_that_no_server_has_run_on_is_compared_with_its_newest_record(machine: Machine) -> None:
    with machine.bench.store.read() as connection:
        recorded = clock_watch.read_recorded(connection)
    assert recorded is not None
    assert recorded.time == machine.bench.clock.now
    machine.bench.clock.now += YEAR
    assert not machine.trusted()
