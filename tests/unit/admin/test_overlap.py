"""The time that is stated for the end of an old authority, and the servers that keep it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from harness.authorities import NOW, certified, clock, events
from harness.server_process import make_state

from equipoise.errors import InvalidArgument, Unavailable
from equipoise.records.identity_items import AuthorityEvent
from equipoise_server.admin.authority_exchange import retire_at_end, rotate_authority
from equipoise_server.admin.checks import check_state
from equipoise_server.admin.overlap import END_FILE, forget_end, state_end, stated_end
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.clock import Clock
from equipoise_server.rounds.clock_watch import ClockWatch
from equipoise_server.upkeep import end_overlap


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return make_state(tmp_path / "state", (), clock=clock)


@pytest.mark.slow
def test_the_old_authority_ends_by_itself_at_the_time_that_was_stated(state: Path) -> None:
    end = NOW + timedelta(hours=1)
    with pytest.raises(InvalidArgument, match="future"):
        rotate_authority(state, clock, NOW)
    assert events(state) == []
    assert open_deployment(state, NOW).authority.predecessor is None
    rotate_authority(state, clock, end)
    assert stated_end(state) == end
    assert retire_at_end(state, lambda: end - timedelta(seconds=1)) is None
    assert set(certified(state).values()) == {True, False}

    async def serve() -> None:
        stopping = asyncio.Event()
        upkeep = asyncio.create_task(end_overlap(state, compared(state, lambda: end), stopping))
        while stated_end(state) is not None:
            assert not upkeep.done()
            await asyncio.sleep(0.01)
        stopping.set()
        await upkeep

    asyncio.run(serve())
    assert set(certified(state).values()) == {True}
    assert events(state) == [AuthorityEvent.ROTATED, AuthorityEvent.RETIRED]
    assert open_deployment(state, NOW).authority.predecessor is None
    assert retire_at_end(state, lambda: end) is None
    check_state(state, clock)


@pytest.mark.slow
def test_a_clock_that_steps_to_the_stated_end_locks_nobody_out(state: Path) -> None:
    rotate_authority(state, clock, NOW + timedelta(days=90))
    told = [NOW]
    watch = compared(state, lambda: told[0])
    told[0] += timedelta(days=365)  # while no time has passed
    with pytest.raises(Unavailable):
        retire_at_end(state, watch.now)

    async def serve() -> None:
        stopping = asyncio.Event()
        upkeep = asyncio.create_task(end_overlap(state, watch, stopping))
        await asyncio.sleep(0.2)
        stopping.set()
        await upkeep

    asyncio.run(serve())
    assert set(certified(state).values()) == {True, False}
    assert events(state) == [AuthorityEvent.ROTATED]


def compared(state: Path, told: Clock) -> ClockWatch:
    """A clock that was compared with the store and trusted, since when no time has passed."""
    watch = ClockWatch(told, lambda: 0.0, None)
    store = open_deployment(state, NOW).open_store()
    try:
        with store.read() as connection:
            assert watch.problem(connection) is None
    finally:
        store.close()
    return watch


def test_without_a_stated_end_and_after_one_that_was_left_behind_nothing_ends(state: Path) -> None:
    state_end(state, NOW + timedelta(hours=1), NOW)
    assert retire_at_end(state, lambda: NOW + timedelta(hours=2)) is None
    assert stated_end(state) is None
    state_end(state, NOW + timedelta(hours=1), NOW)
    rotate_authority(state, clock)
    assert retire_at_end(state, lambda: NOW + timedelta(days=30)) is None
    assert set(certified(state).values()) == {True, False}
    (state / END_FILE).write_text("soon")
    with pytest.raises(InvalidArgument, match="overlap-end"):
        retire_at_end(state, clock)


def test_who_reads_while_the_end_is_stated_and_forgotten_sees_all_of_it_or_nothing(state: Path) -> None:
    end = NOW + timedelta(hours=1)

    def exchange() -> None:
        for _ in range(100):
            state_end(state, end, NOW)
            forget_end(state)

    with ThreadPoolExecutor(1) as threads:
        exchanging = threads.submit(exchange)
        while not exchanging.done():
            assert stated_end(state) in (None, end)
        exchanging.result()
