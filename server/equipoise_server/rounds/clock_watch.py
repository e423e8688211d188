"""Checks whether the clock can be trusted with steps that cannot be undone.

A server with a wrong clock destroys seeds and results too early, closes and releases rounds too early, ends the
turns of sessions, and signs receipts with wrong times. So the server compares the clock before every such step:
with the last time that the store records when the server starts, and afterwards with the seconds that have passed
since then, which nobody can set. If the readings differ, the server still answers other calls, but takes no step
that cannot be undone until the clock is set right or until the holder of the state directory confirms the time
(`equipoise-server clock confirm`).
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

_RECORDED = select(trusted_time.c.time, trusted_time.c.confirmations)
MAX_STEP = timedelta(hours=1)  # more than any correction of a maintained clock, or daylight saving
RECORDING_INTERVAL = timedelta(minutes=10)  # how often the time is recorded

UNTRUSTED = "the server's clock is not trusted now"  # for analysts; operators are told more

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Recorded:
    """The last time that the store records, and the number of confirmations so far."""

    time: datetime
    confirmations: int


def believed_absence(absence_days: int, *kept_days: int) -> timedelta | None:
    """Return after how long without a server its clock must be confirmed; None: never.

    A clock that stepped on by as long as something is kept would remove it, so no longer absence is believed.

    Args:
        absence_days: the configured limit; 0: none.
        kept_days: for how many days results and seeds are kept; 0: for ever.
    """
    return timedelta(days=min(days for days in (absence_days, *kept_days) if days)) if absence_days else None


class ClockWatch:
    """Compares a server's clock. Safe to use from several threads.

    Args:
        clock: The clock to be checked.
        elapsed: Returns the seconds since some fixed moment, whatever the clock says.
        absence: The longest time without a running server after which no confirmation is needed; None: no limit.
    """

    def __init__(self, clock: Clock, elapsed: Elapsed, absence: timedelta | None) -> None:
        self._clock, self._elapsed, self._absence = clock, elapsed, absence
        self._lock = threading.Lock()
        self._trusted: tuple[datetime, float] | None = None  # the clock, and `elapsed`, when first trusted
        self._confirmations = 0
        self._told: str | None = None

    def problem(self, connection: Connection) -> str | None:
        """Return one sentence that says why the clock is not trusted now; None where the clock is trusted."""
        with self._lock:
            recorded, now, elapsed = read_recorded(connection), self._clock(), self._elapsed()
            if self._trusted is None or (recorded and recorded.confirmations != self._confirmations):
                problem = self._compared_with_store(recorded, now)
                if problem is None:
                    self._trusted = now, elapsed
                    self._confirmations = recorded.confirmations if recorded else 0
            else:
                problem = self._compared_with_elapsed(now, elapsed)
            self._tell(problem)
            return problem

    def now(self) -> datetime:
        """Return the present time. Reads no store, so it may be called often; `problem` must be called before.

        Raises:
            Unavailable: the clock is not trusted now, or was not compared with the store yet.
        """
        with self._lock:
            now, elapsed = self._clock(), self._elapsed()
            if self._trusted is None or self._compared_with_elapsed(now, elapsed) is not None:
                raise Unavailable(UNTRUSTED)
            return now

    def check(self, connection: Connection) -> None:
        """Raise `Unavailable` if the clock is not trusted now."""
        if (problem := self.problem(connection)) is not None:
            raise Unavailable(problem)

    def record(self, store: Store) -> None:
        """Record the time of the trusted clock, unless a time was recorded in the last ten minutes."""
        now = self._clock()
        with store.read() as connection:
            recorded = _row(connection)
        if recorded is not None and now - recorded.time < RECORDING_INTERVAL:
            return
        with store.write() as connection:
            # A clock that is slightly behind another server's clock must not set the recorded time back.
            put(connection, now if recorded is None else max(now, recorded.time), 0)

    def _compared_with_elapsed(self, now: datetime, elapsed: float) -> str | None:
        assert self._trusted is not None
        expected = self._trusted[0] + timedelta(seconds=elapsed - self._trusted[1])
        return None if abs(now - expected) <= MAX_STEP else differing(now, expected)

    def _compared_with_store(self, recorded: Recorded | None, now: datetime) -> str | None:
        if recorded is None:
            return None
        late = self._absence is not None and now - recorded.time > self._absence
        return differing(now, recorded.time) if late or recorded.time - now > MAX_STEP else None

    def _tell(self, problem: str | None) -> None:
        """Log each change once. The sentences are not compared: they contain the time, which always differs."""
        if problem is not None and self._told is None:
            log.error("clock_not_trusted", problem=problem)
        elif problem is None and self._told is not None:
            log.info("clock_trusted")
        self._told = problem


def read_recorded(connection: Connection) -> Recorded | None:
    """Return the last recorded time; without one, the time of the log's newest record; None without records."""
    row = _row(connection)
    if row is not None:
        return row
    newest = connection.execute(select(func.max(records.c.publish_time))).scalar_one()
    return None if newest is None else Recorded(from_microseconds(newest), 0)


def confirm(connection: Connection, now: datetime) -> None:
    """Record that `now` is the right time, whatever was recorded before."""
    put(connection, now, 1)


def differing(now: datetime, expected: datetime) -> str:
    """Return the sentence that says why the clock is not trusted."""
    return (
        f"the server's clock says {now:%Y-%m-%d %H:%M} UTC, but {expected:%Y-%m-%d %H:%M} was expected: rounds are "
        "not closed or released, and nothing is removed, until the clock is set right, or confirmed with: "
        "equipoise-server clock confirm"
    )


def put(connection: Connection, time: datetime, confirmed: int) -> None:
    """Write the time, and add to the number of confirmations, in the table's one row."""
    values = {"time": to_microseconds(time), "confirmations": trusted_time.c.confirmations + confirmed}
    if connection.execute(trusted_time.update().values(values)).rowcount == 0:
        connection.execute(trusted_time.insert().values(id=1, time=to_microseconds(time), confirmations=confirmed))


def _row(connection: Connection) -> Recorded | None:
    row = connection.execute(_RECORDED).first()
    return None if row is None else Recorded(from_microseconds(row.time), row.confirmations)
