"""A server whose clock can be wrong while time passes beside it, as on a machine whose clock is set."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import func, select

from equipoise_server.storage.tables.identity import requests
from equipoise_server.storage.tables.round import result_chunks
from equipoise_server.storage.tables.transparency import sealed_seeds
from harness.rounds_bench import Bench, HandClock

YEAR = timedelta(days=365)


@dataclass
class FaultyClock(HandClock):
    """A clock of which one reading can be wrong by a year, that with the number `wrong`, from 0."""

    readings: int = 0
    wrong: int | None = None

    def __call__(self) -> datetime:
        self.readings += 1
        return self.now + (YEAR if self.readings - 1 == self.wrong else timedelta(0))

    def err_at(self, reading: int | None) -> None:
        """Be wrong at one of the readings from now on, the first being 0; None: at none."""
        self.readings, self.wrong = 0, reading


@dataclass
class Machine:
    """A server whose clock can be wrong."""

    bench: Bench
    clock: FaultyClock
    seconds: float = 0.0

    def passes(self, time: timedelta) -> None:
        """Let time pass, and do what is due by the clock, as often as a server would."""
        self.seconds += time.total_seconds()
        self.clock.now += time
        self.bench.rounds.schedule.keep()

    def steps(self, by: timedelta) -> None:
        """Set the clock, and do what is due by it."""
        self.clock.now += by
        self.bench.rounds.schedule.keep()

    def held(self) -> dict[str, int]:
        """How many rows there are of what a clock can destroy."""
        with self.bench.store.read() as connection:
            return {
                table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for table in (result_chunks, sealed_seeds, requests)
            }

    def trusted(self) -> bool:
        """Whether the clock is, and what cannot be undone is done."""
        with self.bench.store.read() as connection:
            return self.bench.rounds.context.watch.problem(connection) is None


@contextmanager
def machine_on(directory: Path, store_url: str) -> Iterator[Machine]:
    """A machine with a server that destroys results after a day, and seeds after a month."""
    seconds: list[Machine] = []
    clock = FaultyClock()
    bench = Bench(
        directory,
        store_url,
        clock=clock,
        audit_window_days=30,
        retention_days=1,
        absence_days=7,
        elapsed=lambda: seconds[0].seconds if seconds else 0.0,
    )
    machine = Machine(bench, clock)
    seconds.append(machine)
    yield machine
    bench.stop()
