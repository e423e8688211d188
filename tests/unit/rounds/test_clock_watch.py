"""What a server believes of its clock, and which time it records."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from harness.log_bench import NOW, LogBench, log_bench
from harness.record_items import forge_item
from harness.stores import sqlite_url

from equipoise.errors import Unavailable
from equipoise.records.record import Audience, Kind
from equipoise_server.rounds.clock_watch import (
    UNTRUSTED,
    ClockWatch,
    confirm,
    put_later,
    read_recorded,
    record_time,
)
from equipoise_server.transparency.record_writer import record

HOUR, YEAR = timedelta(hours=1), timedelta(days=365)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LogBench]:
    with log_bench(tmp_path, sqlite_url(tmp_path)) as made:
        made.start()
        yield made


def recorded(bench: LogBench) -> datetime:
    with bench.store.read() as connection:
        found = read_recorded(connection)
    assert found is not None
    return found.time


def readings(*times: datetime) -> ClockWatch:
    """A watch on a clock that says these times one after the other, while no time passes."""
    left = list(times)
    return ClockWatch(lambda: left.pop(0), lambda: 0.0, None)


def test_a_step_uses_the_reading_that_was_compared(bench: LogBench) -> None:
    watch = readings(NOW, NOW, NOW + YEAR, NOW, NOW + HOUR / 2)
    with bench.store.read() as connection:
        assert watch.read(connection) == (NOW, NOW, None)
        wrong = watch.read(connection)
        assert (wrong.now, wrong.reached) == (NOW + YEAR, NOW)
        assert wrong.problem is not None
        assert watch.read(connection) == (NOW, NOW, None)
        assert watch.time(connection, "operator/olga") == NOW + HOUR / 2


@pytest.mark.parametrize("first", [NOW + YEAR, NOW - HOUR / 2 + YEAR])
def test_a_server_that_starts_believes_no_single_reading(bench: LogBench, first: datetime) -> None:
    """All later readings would be compared with it: by a wrong one all right ones would be wrong."""
    watch = readings(first, NOW, NOW, NOW)
    with bench.store.read() as connection:
        wrong = watch.read(connection)
        assert (wrong.reached, wrong.problem is None) == (NOW, False)
        assert watch.read(connection) == (NOW, NOW, None)


def test_operators_are_told_what_to_do_and_analysts_that_the_clock_is_not_trusted(bench: LogBench) -> None:
    watch = readings(NOW, NOW, NOW - YEAR, NOW - YEAR)
    with bench.store.read() as connection:
        watch.read(connection)
        with pytest.raises(Unavailable, match=r"clock says 2023-01-01 .* but 2024-01-01 .* clock confirm"):
            watch.time(connection, "operator/olga")
        with pytest.raises(Unavailable) as refused:
            watch.time(connection, "analyst/ann")
    assert refused.value.message == UNTRUSTED


def test_a_clock_that_is_behind_another_server_s_does_not_set_the_recorded_time_back(bench: LogBench) -> None:
    with bench.store.write() as connection:
        put_later(connection, NOW + HOUR)
        put_later(connection, NOW + HOUR / 2)
    assert recorded(bench) == NOW + HOUR
    # Who confirms the clock knows better.
    with bench.store.write() as connection:
        confirm(connection, NOW)
    assert recorded(bench) == NOW


def test_the_time_is_recorded_every_ten_minutes(bench: LogBench) -> None:
    record_time(bench.store, NOW)
    record_time(bench.store, NOW + timedelta(minutes=9))
    assert recorded(bench) == NOW
    record_time(bench.store, NOW + timedelta(minutes=10))
    assert recorded(bench) == NOW + timedelta(minutes=10)


def test_the_time_of_a_release_that_waits_has_not_come(bench: LogBench) -> None:
    with bench.store.write() as connection:
        items = [forge_item("release", Audience.AUDITOR, {})]
        later = NOW + YEAR
        record(connection, Kind.ROUND_RELEASED, items, now=NOW, publish_time=later, round_id="r")
    assert recorded(bench) == NOW
    bench.sequence(YEAR.total_seconds())
    assert recorded(bench) == NOW + YEAR
