"""Whether the clock can be trusted with what cannot be undone.

A wrong clock makes a server destroy seeds and results whose time is not over, and close and release rounds early.
So three readings must agree before any of that is done: the clock, the seconds that have passed since this server
last trusted it, which nobody can set, and the last time that is recorded in the store. Where they do not agree,
calls are answered as before, and what cannot be undone waits until the clock is set right, or until the holder of
the state directory confirms it (`equipoise-server clock confirm`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection, func, select

from equipoise.errors import Unavailable
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise_server.clock import Clock, Elapsed
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.clock import trusted_time
from equipoise_server.storage.tables.transparency import records

MAX_STEP = timedelta(hours=1)  # beyond every correction of a clock that is kept right, and daylight saving, too
RECORDING_INTERVAL = timedelta(minutes=10)  # how often the time is recorded

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Recorded:
    """The last time that the store knows, and how often one was confirmed."""

    time: datetime
    confirmations: int


class ClockWatch:
    """Compares a server's clock. Safe to use from several threads.

    Args:
        clock: What is compared.
        elapsed: Seconds that have passed since some moment, whatever the clock says.
        absence: For how long no server may have run before the time must be confirmed; None for any time.
    """

    def __init__(self, clock: Clock, elapsed: Elapsed, absence: timedelta | None) -> None:
        self._clock, self._elapsed, self._absence = clock, elapsed, absence
        self._lock = threading.Lock()
        self._trusted: tuple[datetime, float] | None = None  # when the clock was trusted first: it, and `elapsed`
        self._confirmations = 0
        self._told: str | None = None

    def problem(self, connection: Connection) -> str | None:
        """Return why the clock is not trusted now, in a sentence; None where it is."""
        with self._lock:
            recorded, now, elapsed = read_recorded(connection), self._clock(), self._elapsed()
            if self._trusted is None or (recorded and recorded.confirmations != self._confirmations):
                problem = self._compared_with_store(recorded, now)
                if problem is None:
                    self._trusted = now, elapsed
                    self._confirmations = recorded.confirmations if recorded else 0
            else:
                expected = self._trusted[0] + timedelta(seconds=elapsed - self._trusted[1])
                problem = None if abs(now - expected) <= MAX_STEP else differing(now, expected)
            self._tell(problem)
            return problem

    def check(self, connection: Connection) -> None:
        """Raise `Unavailable` where the clock is not trusted now."""
        if (problem := self.problem(connection)) is not None:
            raise Unavailable(problem)

    def record(self, store: Store) -> None:
        """Record the time, of a clock that is trusted, where that was not done for a while."""
        now = self._clock()
        with store.read() as connection:
            recorded = _row(connection)
        if recorded is not None and now - recorded.time < RECORDING_INTERVAL:
            return
        with store.write() as connection:
            # A clock that goes a little after another server's does not take the time back.
            put(connection, now if recorded is None else max(now, recorded.time), 0)

    def _compared_with_store(self, recorded: Recorded | None, now: datetime) -> str | None:
        if recorded is None:
            return None
        late = self._absence is not None and now - recorded.time > self._absence
        return differing(now, recorded.time) if late or recorded.time - now > MAX_STEP else None

    def _tell(self, problem: str | None) -> None:
        """Log each change once: the problem's sentence has the time, which goes on."""
        if problem is not None and self._told is None:
            log.error("clock_not_trusted", problem=problem)
        elif problem is None and self._told is not None:
            log.info("clock_trusted")
        self._told = problem


def read_recorded(connection: Connection) -> Recorded | None:
    """The last time that was recorded; that of the newest record where no server has run; None without one."""
    row = _row(connection)
    if row is not None:
        return row
    newest = connection.execute(select(func.max(records.c.publish_time))).scalar_one()
    return None if newest is None else Recorded(from_microseconds(newest), 0)


def confirm(connection: Connection, now: datetime) -> None:
    """Record that the time is right, whatever was recorded before."""
    put(connection, now, 1)


def differing(now: datetime, expected: datetime) -> str:
    """Return what is told of a clock that is not trusted."""
    return (
        f"the server's clock says {now:%Y-%m-%d %H:%M} UTC, but {expected:%Y-%m-%d %H:%M} was expected: rounds are "
        "not closed or released, and nothing is removed, until the clock is set right, or confirmed with: "
        "equipoise-server clock confirm"
    )


def put(connection: Connection, time: datetime, confirmed: int) -> None:
    """Write the one row."""
    values = {"time": to_microseconds(time), "confirmations": trusted_time.c.confirmations + confirmed}
    if connection.execute(trusted_time.update().values(values)).rowcount == 0:
        connection.execute(trusted_time.insert().values(id=1, time=to_microseconds(time), confirmations=confirmed))


def _row(connection: Connection) -> Recorded | None:
    row = connection.execute(select(trusted_time.c.time, trusted_time.c.confirmations)).first()
    return None if row is None else Recorded(from_microseconds(row.time), row.confirmations)
