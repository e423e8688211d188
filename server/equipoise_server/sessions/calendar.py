"""Opens rounds and grants by the calendar, each with a closing time, within a yearly budget.

What is opened goes on like any round with a closing time: it is charged, recorded, sealed, run and released as that
is, on the newest version of its dataset. The calendar decides from the store and the clock alone, and asks under an
id of the schedule and the number of the opening. So it survives restarts, several servers may keep it on one store,
and nothing is opened twice. An opening whose closing time has passed before a server was there is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from sqlalchemy import Connection, Row, Update, select

from equipoise.errors import DataLoss, EquipoiseError, InvalidArgument, Unavailable, WrongState
from equipoise.model.accounts import Budget
from equipoise.model.calendar import Period, RoundSchedule, opening_time
from equipoise.model.rounds import GRANT, MechanismPlan, Terms
from equipoise.model.times import to_microseconds
from equipoise.records.canonical import canonical_json
from equipoise.records.public_facts import BUDGET
from equipoise_server.rounds.opening import Opening
from equipoise_server.rounds.schedule import CALLER
from equipoise_server.rounds.slow_steps import SlowSteps
from equipoise_server.rounds.store.scheduled_terms import scheduled_terms, scheduled_terms_to_json
from equipoise_server.rounds.yearly_budget import check_fits, plans_of_year
from equipoise_server.sessions.schedule_rows import (
    due_time,
    goes_on,
    insert_schedule,
    read_schedule,
    row_of,
    shown_schedule,
)
from equipoise_server.sessions.service import Sessions
from equipoise_server.storage.idempotency import make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.paging import cut_page, page_limit, page_number
from equipoise_server.storage.tables.session import round_schedules, scheduled_rounds

MISSED = "it could not be opened before its closing time"
WAITS = "there is no room before the one before it has ended and returned what it did not spend"
STOPPED = "the schedule was stopped before it opened anything"

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
        first_time: datetime | None,
        open_seconds: int,
        yearly_budget: Budget,
        request_id: str,
        caller: str = "",
    ) -> RoundSchedule:
        """Have rounds opened by the calendar.

        Args:
            terms: of each, without a closing time.
            period: how far apart openings are.
            first_time: of the first one, in the future; None: now, and this call opens it.
            open_seconds: how long after its opening each closes; 0: when the next one is opened.
            yearly_budget: the most that all opened in a calendar year may cost the people in the table.
            request_id: makes the call safe to repeat.
            caller: the operator's name.

        Raises:
            InvalidArgument: a field is not what it must be, or the terms allow no plan.
            BudgetExhausted: not even one fits the yearly budget.
            WrongState: 64 schedules go on already.
            Unavailable: the clock is not trusted now.
            EquipoiseError: as opening raises, where the first one is refused now; the schedule is stopped then.
        """
        stored = scheduled_terms_to_json(terms)
        facts = {
            "period": period,
            "first": 0 if first_time is None else to_microseconds(first_time),
            "open": open_seconds,
            "yearly_budget": BUDGET.encode(yearly_budget),
        }
        request = make_request(f"operator/{caller}", request_id, "schedule_rounds", stored, canonical_json(facts))
        made = self.operations.answered(request, read_schedule)
        if made is None:
            with self.operations.store.read() as connection:
                now = self.operations.time(connection, "")
            first = first_time or now.replace(microsecond=0)
            if first_time is not None and first_time <= now:
                raise InvalidArgument("first_time", "must be in the future")
            self._check(terms, period, first, open_seconds, yearly_budget)
            values = {
                "terms": stored,
                "period": period.value,
                "first_time": to_microseconds(first),
                "open_seconds": open_seconds,
                "yearly_epsilon": yearly_budget.epsilon,
                "yearly_delta": yearly_budget.delta,
            }
            made = self.operations.carry_out(request, partial(insert_schedule, values), read_schedule)
        return made if first_time is not None else self._begun(made.id)

    def page(self, page_size: int = 0, page_token: str = "") -> tuple[list[RoundSchedule], str]:
        """Return a page of all schedules, newest first, and the token of the next page."""
        limit, before = page_limit(page_size), page_number(page_token)
        query = select(round_schedules).order_by(round_schedules.c.position.desc()).limit(limit + 1)
        if before:
            query = query.where(round_schedules.c.position < before)
        with self.operations.store.read() as connection:
            rows, token = cut_page(connection.execute(query).all(), limit, lambda row: str(row.position))
            return [shown_schedule(connection, row) for row in rows], token

    def stop(self, schedule_id: str, request_id: str, caller: str = "") -> RoundSchedule:
        """Open no more by a schedule; what it has opened goes on. Raises `NotFound`.

        Args:
            schedule_id: the schedule.
            request_id: makes the call safe to repeat.
            caller: the operator's name.
        """
        request = make_request(f"operator/{caller}", request_id, "stop_schedule", schedule_id)

        def work(connection: Connection, now: datetime) -> str:
            row_of(connection, schedule_id)
            going_on = (round_schedules.c.id == schedule_id) & round_schedules.c.stop_time.is_(None)
            connection.execute(round_schedules.update().where(going_on).values(stop_time=to_microseconds(now)))
            return schedule_id

        return self.operations.carry_out(request, work, read_schedule)

    def keep(self) -> None:
        """Open what is due now. One thread alone may call this.

        Nothing is opened while the clock is not trusted. Raises `Unavailable` where the store cannot be used now.
        """
        with self.operations.store.read() as connection:
            reading = self.sessions.read_clock(connection)
            if reading.problem is not None:
                return
            rows = connection.execute(select(round_schedules).where(round_schedules.c.stop_time.is_(None))).all()
        for row in rows:
            if due_time(row, row.decided) <= reading.now:
                self.slow_steps.take(row.id, partial(self._take, row))

    def _check(
        self, terms: Terms, period: Period, first: datetime, open_seconds: int, yearly_budget: Budget
    ) -> None:
        """Check what is to be scheduled, and that one fits the yearly budget. Raises as `add` does."""
        if terms.close_time is not None:
            raise InvalidArgument("terms.close_time", "must not be set: the schedule closes what it opens")
        if terms.session is not None and terms.session.turn_seconds:
            raise InvalidArgument("terms.session.turn_seconds", "must be 0: sessions by turns are not scheduled")
        following = opening_time(first, period, 1)
        apart = following - first
        if not 0 <= open_seconds <= apart.total_seconds():
            raise InvalidArgument(
                "open_seconds", f"must be at most {apart.total_seconds():.0f}: until the next opening"
            )
        check_fits(yearly_budget, [self.opening.plan(replace(terms, close_time=following))])

    def _begun(self, schedule_id: str) -> RoundSchedule:
        """Return a schedule once its first one is open. Raises where that is refused, and stops it then."""
        with self.operations.store.read() as connection:
            row = row_of(connection, schedule_id)
        refusal: EquipoiseError | None = WrongState(row.problem or STOPPED)
        if not row.decided and row.stop_time is None:
            # Upkeep may open it at the same time: both ask under one id, and get the same.
            opened, refusal = self._opened(row) or ("", WrongState(MISSED))
            self._decide(row, opened, refusal)
        with self.operations.store.read() as connection:
            begun = read_schedule(connection, schedule_id)
        if refusal is not None and not begun.round_ids:
            self.stop(schedule_id, f"{schedule_id} refused")
            raise refusal
        return begun

    def _take(self, row: Row[Any]) -> None:
        """Open the next one of a schedule, or say why not. What cannot be said now is tried again."""
        try:
            if (outcome := self._opened(row)) is not None:
                self._decide(row, *outcome)
            elif row.problem != WAITS:
                with self.operations.store.write() as connection:
                    connection.execute(_still_next(row).values(problem=WAITS))
        except EquipoiseError as error:
            log.error("schedule_not_kept", schedule_id=row.id, problem=error.message)
        except Exception as error:
            # The error's text may contain private data, so only the type is logged.
            log.error("schedule_not_kept", schedule_id=row.id, kind=type(error).__name__)

    def _decide(self, row: Row[Any], opened: str, refusal: EquipoiseError | None) -> None:
        """Store what became of the next one of a schedule, unless that was stored meanwhile."""
        problem = "" if refusal is None else refusal.message
        with self.operations.store.write() as connection:
            done = _still_next(row).values(decided=row.decided + 1, problem=problem)
            if connection.execute(done).rowcount and opened:
                made = {"schedule_id": row.id, "number": row.decided, "round_id": opened}
                connection.execute(scheduled_rounds.insert().values(made))
        log.info("scheduled_round", schedule_id=row.id, round_id=opened, problem=problem)

    def _opened(self, row: Row[Any]) -> tuple[str, EquipoiseError | None] | None:
        """Return the id of the round that is opened now; or an empty one, and why there is none.

        None: a grant has no room yet, but those before it, which go on, may return what they did not spend.
        """
        due, following = due_time(row, row.decided), due_time(row, row.decided + 1)
        closing = due + timedelta(seconds=row.open_seconds) if row.open_seconds else following
        with self.operations.store.read() as connection:
            now = self.operations.time(connection, "")
        if closing <= now:
            return "", WrongState(MISSED)
        terms = replace(scheduled_terms(row.terms), close_time=closing)
        request_id = f"{row.id} {row.decided}"
        try:
            with self.operations.store.read() as connection:
                before, waits = plans_of_year(connection, row.id, due), goes_on(connection, row.id)
            plan = self.opening.plan(terms)
            check_fits(Budget(row.yearly_epsilon, row.yearly_delta), [*before, plan])
            if terms.mechanism == GRANT and waits and not self._has_room(terms, plan):
                return None
            opens = self.opening if terms.session is None else self.sessions
            return opens.open(terms, request_id, CALLER).id, None
        except (Unavailable, DataLoss):
            raise
        except EquipoiseError as error:
            return "", error

    def _has_room(self, terms: Terms, plan: MechanismPlan) -> bool:
        """Return whether the accounts and this server have room for a grant now."""
        refused = any(each.refusal for each in self.opening.charges(terms, plan))
        return not refused and self.sessions.loops.has_room_for_grants()


def _still_next(row: Row[Any]) -> Update:
    """Return an update of a schedule that does nothing once its next one was decided."""
    return round_schedules.update().where(round_schedules.c.id == row.id, round_schedules.c.decided == row.decided)
