"""Opens rounds and grants by the calendar, each with a closing time, within a yearly budget.

What is opened goes on like any round with a closing time: it is charged, recorded, sealed, run and released as that
is, on the newest version of its dataset. The calendar decides from the store and the clock alone, and asks under an
id of the schedule and the number of the opening. So it survives restarts, several servers may keep it on one store,
and nothing is opened twice. An opening whose closing time has passed before a server was there is left out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from sqlalchemy import Connection, Row, select

from equipoise.errors import (
    DataLoss,
    EquipoiseError,
    InvalidArgument,
    NotFound,
    Unavailable,
    WrongState,
)
from equipoise.model.accounts import Budget
from equipoise.model.calendar import Period, RoundSchedule, opening_time
from equipoise.model.rounds import Terms
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise.records.canonical import canonical_json
from equipoise.records.public_facts import BUDGET
from equipoise_server.rounds.opening import Opening
from equipoise_server.rounds.schedule import CALLER
from equipoise_server.rounds.slow_steps import SlowSteps
from equipoise_server.rounds.store.scheduled_terms import scheduled_terms, scheduled_terms_to_json
from equipoise_server.rounds.yearly_budget import check_fits, plans_of_year
from equipoise_server.sessions.service import Sessions
from equipoise_server.storage.idempotency import make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.paging import cut_page, page_limit, page_number
from equipoise_server.storage.tables.session import round_schedules, scheduled_rounds

ID_BYTES = 16
MAX_SCHEDULES = 64  # that are not stopped
SHOWN_ROUNDS = 12  # of a schedule
NO_SCHEDULE = "there is no such schedule"
MISSED = "no server was running between its opening and its closing time"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Calendar:
    """The schedules of one store. `sessions` opens what is a session."""

    operations: Operations
    opening: Opening
    sessions: Sessions
    slow_steps: SlowSteps = field(default_factory=SlowSteps)

    def add(
        self,
        terms: Terms,
        period: Period,
        first_time: datetime,
        open_seconds: int,
        yearly_budget: Budget,
        request_id: str,
        caller: str = "",
    ) -> RoundSchedule:
        """Have rounds opened by the calendar.

        Args:
            terms: of each, without a closing time.
            period: how far apart openings are.
            first_time: of the first one, in the future.
            open_seconds: how long after its opening each closes; 0: when the next one is opened.
            yearly_budget: the most that all opened in a calendar year may cost the people in the table.
            request_id: makes the call safe to repeat.
            caller: the operator's name.

        Raises:
            InvalidArgument: a field is not what it must be, or the terms allow no plan.
            BudgetExhausted: not even one fits the yearly budget.
            WrongState: 64 schedules go on already.
        """
        stored = scheduled_terms_to_json(terms)
        facts = {
            "period": period,
            "first": to_microseconds(first_time),
            "open": open_seconds,
            "yearly_budget": BUDGET.encode(yearly_budget),
        }
        request = make_request(f"operator/{caller}", request_id, "schedule_rounds", stored, canonical_json(facts))
        if (known := self.operations.answered(request, _read)) is not None:
            return known
        if terms.close_time is not None:
            raise InvalidArgument("terms.close_time", "must not be set: the schedule closes what it opens")
        if terms.session is not None and terms.session.turn_seconds:
            raise InvalidArgument("terms.session.turn_seconds", "must be 0: sessions by turns are not scheduled")
        apart = opening_time(first_time, period, 1) - first_time
        if not 0 <= open_seconds <= apart.total_seconds():
            raise InvalidArgument(
                "open_seconds", f"must be at most {apart.total_seconds():.0f}: until the next opening"
            )
        if first_time <= self.operations.clock():
            raise InvalidArgument("first_time", "must be in the future")
        plan = self.opening.plan(replace(terms, close_time=opening_time(first_time, period, 1)))
        check_fits(yearly_budget, [plan])

        def work(connection: Connection, now: datetime) -> str:
            going_on = select(round_schedules.c.id).where(round_schedules.c.stop_time.is_(None))
            if len(connection.execute(going_on).all()) >= MAX_SCHEDULES:
                raise WrongState(f"{MAX_SCHEDULES} schedules go on already; stop one first")
            schedule_id = os.urandom(ID_BYTES).hex()
            connection.execute(
                round_schedules.insert().values(
                    id=schedule_id,
                    terms=stored,
                    period=period.value,
                    first_time=to_microseconds(first_time),
                    open_seconds=open_seconds,
                    yearly_epsilon=yearly_budget.epsilon,
                    yearly_delta=yearly_budget.delta,
                    create_time=to_microseconds(now),
                    decided=0,
                    problem="",
                )
            )
            return schedule_id

        return self.operations.carry_out(request, work, _read)

    def page(self, page_size: int = 0, page_token: str = "") -> tuple[list[RoundSchedule], str]:
        """Return a page of all schedules, newest first, and the token of the next page."""
        limit, before = page_limit(page_size), page_number(page_token)
        query = select(round_schedules).order_by(round_schedules.c.position.desc()).limit(limit + 1)
        if before:
            query = query.where(round_schedules.c.position < before)
        with self.operations.store.read() as connection:
            rows, token = cut_page(connection.execute(query).all(), limit, lambda row: str(row.position))
            return [_schedule(connection, row) for row in rows], token

    def stop(self, schedule_id: str, request_id: str, caller: str = "") -> RoundSchedule:
        """Open no more by a schedule; what it has opened goes on. Raises `NotFound`.

        Args:
            schedule_id: the schedule.
            request_id: makes the call safe to repeat.
            caller: the operator's name.
        """
        request = make_request(f"operator/{caller}", request_id, "stop_schedule", schedule_id)

        def work(connection: Connection, now: datetime) -> str:
            _row(connection, schedule_id)
            going_on = (round_schedules.c.id == schedule_id) & round_schedules.c.stop_time.is_(None)
            connection.execute(round_schedules.update().where(going_on).values(stop_time=to_microseconds(now)))
            return schedule_id

        return self.operations.carry_out(request, work, _read)

    def keep(self) -> None:
        """Open what is due now. One thread alone may call this.

        Nothing is opened while the clock is not trusted. Raises `Unavailable` where the store cannot be used now.
        """
        now = self.operations.clock()
        with self.operations.store.read() as connection:
            if self.sessions.clock_problem(connection) is not None:
                return
            rows = connection.execute(select(round_schedules).where(round_schedules.c.stop_time.is_(None))).all()
        for row in rows:
            if _time(row, row.decided) <= now:
                self.slow_steps.take(row.id, partial(self._take, row))

    def _take(self, row: Row[Any]) -> None:
        """Open the next one of a schedule, or say why not. What cannot be said now is tried again."""
        try:
            opened, problem = self._opened(row)
            with self.operations.store.write() as connection:
                next_one = (round_schedules.c.id == row.id) & (round_schedules.c.decided == row.decided)
                done = round_schedules.update().where(next_one).values(decided=row.decided + 1, problem=problem)
                if connection.execute(done).rowcount and opened:
                    made = {"schedule_id": row.id, "number": row.decided, "round_id": opened}
                    connection.execute(scheduled_rounds.insert().values(made))
            log.info("scheduled_round", schedule_id=row.id, round_id=opened, problem=problem)
        except EquipoiseError as error:
            log.error("schedule_not_kept", schedule_id=row.id, problem=error.message)
        except Exception as error:
            # The error's text may contain private data, so only the type is logged.
            log.error("schedule_not_kept", schedule_id=row.id, kind=type(error).__name__)

    def _opened(self, row: Row[Any]) -> tuple[str, str]:
        """Return the id of the round that is opened now; or an empty one, and why there is none."""
        due, following = _time(row, row.decided), _time(row, row.decided + 1)
        closing = due + timedelta(seconds=row.open_seconds) if row.open_seconds else following
        if closing <= self.operations.clock():
            return "", MISSED
        terms = replace(scheduled_terms(row.terms), close_time=closing)
        request_id = f"{row.id} {row.decided}"
        try:
            with self.operations.store.read() as connection:
                before = plans_of_year(connection, row.id, due)
            check_fits(Budget(row.yearly_epsilon, row.yearly_delta), [*before, self.opening.plan(terms)])
            opens = self.opening if terms.session is None else self.sessions
            return opens.open(terms, request_id, CALLER).id, ""
        except (Unavailable, DataLoss):
            raise
        except EquipoiseError as error:
            return "", error.message


def _time(row: Row[Any], number: int) -> datetime:
    return opening_time(from_microseconds(row.first_time), Period(row.period), number)


def _row(connection: Connection, schedule_id: str) -> Row[Any]:
    row = connection.execute(select(round_schedules).where(round_schedules.c.id == schedule_id)).first()
    if row is None:
        raise NotFound(NO_SCHEDULE)
    return row


def _read(connection: Connection, schedule_id: str) -> RoundSchedule:
    return _schedule(connection, _row(connection, schedule_id))


def _schedule(connection: Connection, row: Row[Any]) -> RoundSchedule:
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
        next_time=_time(row, row.decided) if row.stop_time is None else None,
        round_ids=tuple(connection.execute(newest).scalars()),
        problem=row.problem,
    )
