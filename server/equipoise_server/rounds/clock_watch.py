"""Checks whether the clock can be trusted with steps that cannot be undone.

A server with a wrong clock destroys seeds and results too early, closes and releases rounds too early, ends the
turns of sessions, and charges what it opens at wrong times. So the server compares the clock before every such
step: with the last time that the store records when the server starts, and afterwards with the seconds that have
passed since then, which nobody can set. If the readings differ, the server still answers other calls, but takes no
step that cannot be undone until the clock is set right or until the holder of the state directory confirms the time
(`equipoise-server clock confirm`).

A step uses the reading that was compared, never another one: a single wrong reading among right ones does nothing.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog
from sqlalchemy import Connection, func, or_, select

from equipoise.errors import Unavailable
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise.records.log_items import ConfirmationItem
from equipoise.records.record import Audience, Kind
from equipoise.records.record_layouts import make_item
from equipoise_server.clock import Clock, Elapsed
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.clock import trusted_time
from equipoise_server.storage.tables.transparency import records
from equipoise_server.transparency.record_writer import journal_head, record

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


class Reading(NamedTuple):
    """One reading of the clock, compared.

    `now`: what the clock says. `reached`: a time that has come for certain; `now` where the clock is trusted.
    `problem`: one sentence that says why the clock is not trusted; None where it is.
    """

    now: datetime
    reached: datetime
    problem: str | None


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

    def read(self, connection: Connection) -> Reading:
        """Read the clock and compare it. `reached` is no later than what the clock was compared with."""
        with self._lock:
            recorded, now, elapsed = read_recorded(connection), self._clock(), self._elapsed()
            if self._trusted is None or (recorded and recorded.confirmations != self._confirmations):
                expected, trusted = self._compared_with_store(recorded, now)
                if trusted:
                    self._trusted = now, elapsed
                    self._confirmations = recorded.confirmations if recorded else 0
            else:
                expected, trusted = self._compared_with_elapsed(now, elapsed)
            problem = None if trusted else differing(now, expected)
            self._tell(problem)
            return Reading(now, now if trusted else min(now, expected), problem)

    def problem(self, connection: Connection) -> str | None:
        """Return one sentence that says why the clock is not trusted now; None where the clock is trusted."""
        return self.read(connection).problem

    def time(self, connection: Connection, caller: str) -> datetime:
        """Return the present time for a caller's request that changes something.

        Args:
            connection: to the store.
            caller: as requests name callers.

        Raises:
            Unavailable: the clock is not trusted now. Analysts are told that only, and others what to do.
        """
        reading = self.read(connection)
        if reading.problem is not None:
            raise Unavailable(UNTRUSTED if caller.startswith("analyst/") else reading.problem)
        return reading.now

    def now(self) -> datetime:
        """Return the present time. Reads no store, so it may be called often; `read` must be called before.

        Raises:
            Unavailable: the clock is not trusted now, or was not compared with the store yet.
        """
        with self._lock:
            now, elapsed = self._clock(), self._elapsed()
            if self._trusted is None or not self._compared_with_elapsed(now, elapsed)[1]:
                raise Unavailable(UNTRUSTED)
            return now

    def _compared_with_elapsed(self, now: datetime, elapsed: float) -> tuple[datetime, bool]:
        """Return the time that is expected after so many seconds, and whether the clock agrees."""
        assert self._trusted is not None
        expected = self._trusted[0] + timedelta(seconds=elapsed - self._trusted[1])
        return expected, abs(now - expected) <= MAX_STEP

    def _compared_with_store(self, recorded: Recorded | None, now: datetime) -> tuple[datetime, bool]:
        """Return the time that the clock is compared with at the start, and whether it may be right."""
        if recorded is not None:
            late = self._absence is not None and now - recorded.time > self._absence
            if late or recorded.time - now > MAX_STEP:
                return recorded.time, False
        # What is believed here, all later readings are compared with: so one wrong reading must not be.
        again = self._clock()
        return again, abs(again - now) <= MAX_STEP

    def _tell(self, problem: str | None) -> None:
        """Log each change once. The sentences are not compared: they contain the time, which always differs."""
        if problem is not None and self._told is None:
            log.error("clock_not_trusted", problem=problem)
        elif problem is None and self._told is not None:
            log.info("clock_trusted")
        self._told = problem


def read_recorded(connection: Connection) -> Recorded | None:
    """Return the last recorded time; without one, the time of the newest record; None without records."""
    row = _row(connection)
    if row is not None:
        return row
    # A release that is not in the log yet may wait for a time that has not come.
    come = or_(records.c.kind != Kind.ROUND_RELEASED.value, records.c.log_index.is_not(None))
    newest = connection.execute(select(func.max(records.c.publish_time)).where(come)).scalar_one()
    return None if newest is None else Recorded(from_microseconds(newest), 0)


def record_time(store: Store, now: datetime) -> None:
    """Record the time of a trusted clock, unless a time was recorded in the last ten minutes."""
    with store.read() as connection:
        recorded = _row(connection)
    if recorded is None or now - recorded.time >= RECORDING_INTERVAL:
        with store.write() as connection:
            put_later(connection, now)


def put_later(connection: Connection, now: datetime) -> None:
    """Write the time, unless a later one is recorded: another server's clock may be slightly ahead."""
    recorded = _row(connection)
    put(connection, now if recorded is None else max(now, recorded.time), 0)


def confirm(connection: Connection, now: datetime) -> None:
    """Record that `now` is the right time, whatever was recorded before, in the store and in the log."""
    recorded = read_recorded(connection)
    before = None if recorded is None else to_microseconds(recorded.time)
    item = ConfirmationItem(before, journal_head(connection), to_microseconds(now))
    record(connection, Kind.CLOCK_CONFIRMED, [make_item(item, Audience.AUDITOR)], now=now)
    put(connection, now, 1)


def differing(now: datetime, expected: datetime) -> str:
    """Return the sentence that says why the clock is not trusted."""
    return (
        f"the server's clock says {now:%Y-%m-%d %H:%M} UTC, but {expected:%Y-%m-%d %H:%M} was expected: nothing is "
        "opened, charged, closed, released or removed until the clock is set right, or confirmed with: "
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
