"""The stored schedules, each with what it has opened last.

Every function works in the transaction of the connection that it is given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from equipoise.errors import NotFound, WrongState
from equipoise.model.accounts import Budget
from equipoise.model.calendar import Period, RoundSchedule, opening_time
from equipoise.model.rounds import RoundState
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise_server.rounds.store.scheduled_terms import scheduled_terms
from equipoise_server.storage.tables.round import rounds
from equipoise_server.storage.tables.session import round_schedules, scheduled_rounds

ID_BYTES = 16
MAX_SCHEDULES = 64  # that are not stopped
SHOWN_ROUNDS = 12  # of a schedule
NO_SCHEDULE = "there is no such schedule"
_GOES_ON = rounds.c.state.in_([state.value for state in RoundState if not state.ended])


def due_time(row: Row[Any], number: int) -> datetime:
    """Return when an opening is due.

    Args:
        row: of its schedule.
        number: which one, from 0.
    """
    return opening_time(from_microseconds(row.first_time), Period(row.period), number)


def insert_schedule(values: Mapping[str, object], connection: Connection, now: datetime) -> str:
    """Store a new schedule, of which nothing is decided, and return its id.

    Args:
        values: what was asked for, by the names of columns.
        connection: in a transaction.
        now: the time.

    Raises:
        WrongState: 64 schedules go on already.
    """
    going_on = select(round_schedules.c.id).where(round_schedules.c.stop_time.is_(None))
    if len(connection.execute(going_on).all()) >= MAX_SCHEDULES:
        raise WrongState(f"{MAX_SCHEDULES} schedules go on already; stop one first")
    schedule_id = os.urandom(ID_BYTES).hex()
    begun = {"id": schedule_id, "create_time": to_microseconds(now), "decided": 0, "problem": ""}
    connection.execute(round_schedules.insert().values({**values, **begun}))
    return schedule_id


def row_of(connection: Connection, schedule_id: str) -> Row[Any]:
    """Return a schedule's row. Raises `NotFound`."""
    row = connection.execute(select(round_schedules).where(round_schedules.c.id == schedule_id)).first()
    if row is None:
        raise NotFound(NO_SCHEDULE)
    return row


def read_schedule(connection: Connection, schedule_id: str) -> RoundSchedule:
    """Return a schedule as operators see it. Raises `NotFound`."""
    return shown_schedule(connection, row_of(connection, schedule_id))


def shown_schedule(connection: Connection, row: Row[Any]) -> RoundSchedule:
    """Return the schedule of a row as operators see it."""
    own = select(scheduled_rounds.c.round_id).where(scheduled_rounds.c.schedule_id == row.id)
    newest = own.order_by(scheduled_rounds.c.number.desc()).limit(SHOWN_ROUNDS)
    return RoundSchedule(
        id=row.id,
        terms=scheduled_terms(row.terms),
        period=Period(row.period),
        first_time=from_microseconds(row.first_time),
        open_seconds=row.open_seconds,
        yearly_budget=Budget(row.yearly_epsilon, row.yearly_delta),
        create_time=from_microseconds(row.create_time),
        stop_time=None if row.stop_time is None else from_microseconds(row.stop_time),
        next_time=due_time(row, row.decided) if row.stop_time is None else None,
        round_ids=tuple(connection.execute(newest).scalars()),
        problem=row.problem,
    )


def goes_on(connection: Connection, schedule_id: str) -> bool:
    """Return whether anything that a schedule has opened has not ended yet."""
    own = scheduled_rounds.c.schedule_id == schedule_id
    opened = select(rounds.c.id).join(scheduled_rounds, scheduled_rounds.c.round_id == rounds.c.id)
    return connection.execute(opened.where(own, _GOES_ON).limit(1)).first() is not None
