"""Clocks that are set while a server runs: no time is told until it is confirmed or set right."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from harness.log_bench import NOW, LogBench, log_bench
from harness.stores import sqlite_url

from equipoise.errors import Unavailable
from equipoise_server.rounds.clock_watch import MAX_STEP, ClockWatch, confirm

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LogBench]:
    with log_bench(tmp_path, sqlite_url(tmp_path)) as made:
        made.start()
        yield made


def trusted(bench: LogBench) -> ClockWatch:
    """Of a clock that was right when it was read first, while no time passes."""
    watch = ClockWatch(lambda: bench.now, lambda: 0.0, None)
    with bench.store.read() as connection:
        assert watch.read(connection).problem is None
    return watch


@pytest.mark.parametrize("step", [MAX_STEP + SECOND, -MAX_STEP - SECOND, DAY])
def test_no_time_is_told_by_a_clock_that_was_set(bench: LogBench, step: timedelta) -> None:
    watch = trusted(bench)
    assert watch.now() == NOW
    bench.now = NOW + step
    with pytest.raises(Unavailable, match="not trusted"):
        watch.now()
    bench.now = NOW + SECOND
    assert watch.now() == NOW + SECOND


def test_no_time_is_told_before_the_clock_was_compared(bench: LogBench) -> None:
    with pytest.raises(Unavailable, match="not trusted"):
        ClockWatch(lambda: bench.now, lambda: 0.0, None).now()


def test_a_server_that_runs_believes_a_time_once_it_is_confirmed(bench: LogBench) -> None:
    watch = trusted(bench)
    bench.now = NOW + DAY
    with bench.store.read() as connection:
        assert watch.read(connection).problem is not None
    with bench.store.write() as connection:
        confirm(connection, bench.now)
    with bench.store.read() as connection:
        assert watch.read(connection) == (NOW + DAY, NOW + DAY, None)
    assert watch.now() == NOW + DAY
