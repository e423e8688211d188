"""Clocks that are behind: a server does not start with one, and no later time than it says has come for certain."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from harness.log_bench import NOW, LogBench, log_bench
from harness.stores import sqlite_url

from equipoise_server.rounds.clock_watch import MAX_STEP, ClockWatch, Reading, put_later

SECOND, YEAR = timedelta(seconds=1), timedelta(days=365)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LogBench]:
    with log_bench(tmp_path, sqlite_url(tmp_path)) as made:
        made.start()
        with made.store.write() as connection:
            put_later(connection, NOW)
        yield made


def last_reading(bench: LogBench, absence: timedelta | None, *times: datetime) -> Reading:
    """The last of some readings of a clock that says these times one after the other, while no time passes."""
    left = list(times)
    watch = ClockWatch(lambda: left.pop(0), lambda: 0.0, absence)
    with bench.store.read() as connection:
        while True:
            reading = watch.read(connection)
            if not left:
                return reading


@pytest.mark.parametrize("absence", [None, YEAR])
@pytest.mark.parametrize("behind", [MAX_STEP + SECOND, YEAR])
def test_a_server_does_not_start_before_the_time_that_it_recorded(
    bench: LogBench, absence: timedelta | None, behind: timedelta
) -> None:
    reading = last_reading(bench, absence, NOW - behind)
    assert (reading.now, reading.reached) == (NOW - behind, NOW - behind)
    assert reading.problem is not None


@pytest.mark.parametrize("absence", [None, YEAR])
def test_a_correction_of_an_hour_is_believed(bench: LogBench, absence: timedelta | None) -> None:
    set_back = NOW - MAX_STEP
    assert last_reading(bench, absence, set_back, set_back) == (set_back, set_back, None)


@pytest.mark.parametrize("behind", [MAX_STEP + SECOND, YEAR])
def test_what_a_clock_that_was_set_back_does_not_say_has_not_come_for_certain(
    bench: LogBench, behind: timedelta
) -> None:
    reading = last_reading(bench, None, NOW, NOW, NOW - behind)
    assert (reading.now, reading.reached) == (NOW - behind, NOW - behind)
    assert reading.problem is not None
