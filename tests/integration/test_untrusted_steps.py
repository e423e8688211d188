"""While the clock is not trusted nothing is charged, destroyed or told early, nor by one wrong reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from harness.rounds_bench import ANN, SALT, TERMS, Bench
from harness.session_terms import BY_TURNS
from harness.wrong_clocks import YEAR, Machine, machine_on
from sqlalchemy import select
from structlog.testing import capture_logs

from equipoise.errors import Unavailable, WrongState
from equipoise.model.accounts import Budget
from equipoise.model.calendar import Period
from equipoise.model.grants import grant_terms
from equipoise.model.identities import Role
from equipoise.model.rounds import RoundState
from equipoise.model.times import from_microseconds
from equipoise.records.record import Kind
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.rounds.dataset_endings import delete_dataset, retire_dataset
from equipoise_server.sessions.calendar import Calendar
from equipoise_server.storage.idempotency import make_request
from equipoise_server.storage.tables.transparency import records
from equipoise_server.transparency.identity_records import recorded_registry

DAY = timedelta(days=1)
PLAIN = replace(TERMS, mechanism="gaussian", options={})
GRANT_TERMS = grant_terms("shop", "ann", Budget(0.2, 1e-6), None, 0.05)
WHAT_TO_DO = r"the server's clock says 2024-12-31 .* but 2024-01-01 .* expected.* equipoise-server clock confirm"


@pytest.fixture
def machine(tmp_path: Path, store_url: str) -> Iterator[Machine]:
    with machine_on(tmp_path, store_url) as made:
        made.passes(timedelta(seconds=1))
        yield made


def calendar_of(bench: Bench) -> Calendar:
    return Calendar(bench.rounds.operations, bench.rounds.opening, bench.sessions)


def steps(bench: Bench, opened: str, sealed: str, complete: str) -> dict[str, Callable[[], object]]:
    """What operators and auditors can ask for that is not taken back, by the request's id."""
    rounds, lifecycle, operations = bench.rounds, bench.rounds.lifecycle, bench.rounds.operations
    yearly = Budget(19.0, 1e-3)
    return {
        "round": lambda: rounds.opening.open(PLAIN, "round"),
        "by turns": lambda: bench.sessions.open(BY_TURNS, "by turns"),
        "grant": lambda: bench.sessions.open(GRANT_TERMS, "grant"),
        "calendar": lambda: calendar_of(bench).add(GRANT_TERMS, Period.WEEKLY, None, 0, yearly, "calendar"),
        "nonce": lambda: rounds.seeds.set_nonce(opened, bytes(32), "nonce"),
        "seal": lambda: lifecycle.seal(opened, "seal"),
        "run": lambda: lifecycle.run(sealed, "run"),
        "release": lambda: lifecycle.release(complete, "release"),
        "abort": lambda: lifecycle.abort(sealed, "a public reason", "abort"),
        "retire": lambda: retire_dataset(operations, "shop", "retire"),
        "delete": lambda: delete_dataset(operations, "shop", "delete"),
    }


def test_nothing_is_opened_charged_or_ended_by_a_clock_that_is_not_trusted(machine: Machine) -> None:
    bench = machine.bench
    places = bench.opened(PLAIN), bench.sealed(PLAIN), bench.completed(PLAIN)
    before = bench.on_data(), machine.held(), [bench.state(each) for each in places]
    machine.steps(YEAR)
    for step in steps(bench, *places).values():
        with pytest.raises(Unavailable, match=WHAT_TO_DO):
            step()
    machine.steps(-YEAR)
    assert (bench.on_data(), machine.held(), [bench.state(each) for each in places]) == before
    # By the right clock the same request is carried out, and has the right time.
    session = bench.sessions.open(BY_TURNS, "by turns")
    assert session.open_time == bench.clock.now
    assert bench.on_data().committed != before[0].committed
    # What was carried out is told again, whatever the clock says.
    machine.steps(YEAR)
    assert bench.sessions.open(BY_TURNS, "by turns").id == session.id


def test_no_release_is_recorded_or_delivered_before_its_time_by_a_clock_that_is_not_trusted(
    machine: Machine,
) -> None:
    bench, views = machine.bench, machine.bench.rounds.analyst_views
    round_id = bench.opened(replace(PLAIN, release_grid_seconds=7 * 86_400))
    bench.rounds.submissions.submit("ann", round_id, "ann", workload_to_bytes(ANN), SALT)
    for step in (bench.rounds.lifecycle.seal, bench.rounds.lifecycle.run):
        step(round_id, f"{step.__name__} {round_id}")
    bench.wait(round_id)
    release_time = bench.rounds.lifecycle.release(round_id, "release").release_time
    assert release_time is not None
    assert release_time - bench.clock.now > DAY

    def recorded() -> bool:
        released = (records.c.round_id == round_id) & (records.c.kind == Kind.ROUND_RELEASED.value)
        with bench.store.read() as connection:
            return connection.execute(select(records.c.log_index).where(released)).scalar_one() is not None

    def shown() -> RoundState:
        return views.get("ann", round_id).state

    for step_back in (False, True):
        machine.steps(YEAR)
        if step_back:  # a server that is started while the clock is wrong has the store's word for the time
            bench.restart()
            views = bench.rounds.analyst_views
            bench.rounds.schedule.keep()
        assert not machine.trusted()
        with pytest.raises(Unavailable, match="clock is not trusted"):
            views.results("ann", round_id, 0, 10)
        with pytest.raises(WrongState, match="has not ended"):
            views.evidence("ann", round_id, 0)
        with pytest.raises(Unavailable, match=WHAT_TO_DO):
            bench.rounds.seeds.read(round_id, "audrey")
        assert (recorded(), shown()) == (False, RoundState.SEALED)
        assert [each.state for each in views.page("ann")[0]] == [RoundState.SEALED]
        machine.steps(-YEAR)
        assert (recorded(), shown()) == (False, RoundState.SEALED)
    machine.passes(release_time - bench.clock.now)
    assert (recorded(), shown()) == (True, RoundState.RELEASED)
    results = views.results("ann", round_id, 0, 10)
    # What is out stays out.
    machine.steps(YEAR)
    assert (views.results("ann", round_id, 0, 10), shown()) == (results, RoundState.RELEASED)


@pytest.mark.parametrize("looked_at", [True, False])
def test_a_revocation_is_in_force_and_on_record_at_once_and_holds_up_nothing(
    machine: Machine, looked_at: bool
) -> None:
    """Under the time of a clock that is a year ahead, it would keep all later records out of the log for a year."""
    bench, right = machine.bench, machine.bench.clock.now
    machine.clock.now += YEAR
    registry = recorded_registry(bench.rounds.identity_operations)
    registry.revoke("ann", {Role.ANALYST}, make_request("operator/olga", "1", "revoke_identity", "ann"))
    revoked = select(records).where(records.c.kind == Kind.IDENTITY_CHANGED.value)
    newest = revoked.order_by(records.c.position.desc()).limit(1)
    if looked_at:
        bench.rounds.schedule.keep()
        with bench.store.read() as connection:
            assert connection.execute(newest).one().log_index is not None
    machine.steps(-YEAR)
    bench.opened(PLAIN)
    bench.rounds.schedule.keep()
    with bench.store.read() as connection:
        assert from_microseconds(connection.execute(newest).one().publish_time) == right
        assert connection.execute(select(records).where(records.c.log_index.is_(None))).all() == []


def test_one_wrong_reading_among_right_ones_destroys_and_records_nothing(machine: Machine) -> None:
    bench = machine.bench
    released = bench.released(PLAIN)
    machine.passes(timedelta(seconds=60))
    waiting = bench.opened(replace(PLAIN, close_time=bench.clock.now + DAY))
    before = machine.held()
    assert before["sealed_seeds"] > 0
    machine.clock.err_at(None)
    bench.rounds.schedule.keep()
    for wrong in range(machine.clock.readings + 1):
        machine.clock.err_at(wrong)
        bench.rounds.schedule.keep()
        assert (machine.held(), bench.state(waiting)) == (before, RoundState.OPEN)
    # Nor does a server that is started believe the first reading without a second one.
    for wrong in range(3):
        machine.passes(timedelta(minutes=11))  # so that the time is recorded anew
        machine.clock.err_at(wrong)
        bench.absence_days = 0
        bench.restart()
        bench.rounds.schedule.keep()
        machine.clock.err_at(None)
        bench.rounds.schedule.keep()
        assert machine.trusted()
        assert (machine.held(), bench.state(waiting)) == (before, RoundState.OPEN)
    assert bench.rounds.analyst_views.results("ann", released.id, 0, 1)


def test_what_is_opened_has_no_time_of_a_single_wrong_reading(machine: Machine) -> None:
    bench = machine.bench
    machine.clock.err_at(None)
    bench.rounds.opening.open(PLAIN, "the readings of one opening")
    for wrong in range(machine.clock.readings + 1):
        machine.clock.err_at(wrong)
        with suppress(Unavailable):
            assert bench.rounds.opening.open(PLAIN, f"wrong at {wrong}").open_time == bench.clock.now


def test_a_schedule_waits_silently_and_misses_nothing_while_the_clock_is_not_trusted(machine: Machine) -> None:
    bench, calendar = machine.bench, calendar_of(machine.bench)
    calendar.add(GRANT_TERMS, Period.WEEKLY, bench.clock.now + DAY, 0, Budget(19.0, 1e-3), "weekly")
    before = bench.on_data()
    for step in (DAY, YEAR):  # a day: the first one is due by the wrong clock; a year: it would have been missed
        machine.steps(step)
        with capture_logs() as logged:
            calendar.keep()
        ((schedule,), _), told = calendar.page(), [entry["event"] for entry in logged]
        assert (schedule.round_ids, schedule.problem, told) == ((), "", [])
        machine.steps(-step)
        calendar.keep()
        assert bench.on_data() == before
    machine.passes(DAY)
    calendar.keep()
    assert len(calendar.page()[0][0].round_ids) == 1
    assert bench.on_data() != before
