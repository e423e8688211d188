"""Rounds and grants that are opened by the calendar: when each is due, and what they are to be."""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Terms


class Period(StrEnum):
    """How far apart two openings are."""

    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"


def opening_time(first: datetime, period: Period, number: int) -> datetime:
    """Return when an opening of a schedule is due.

    Args:
        first: when the first one is.
        period: how far apart they are. A month's is on the same day as the first, or on the month's last day.
        number: which one, from 0.
    """
    if period is not Period.MONTHLY:
        return first + number * timedelta(days=1 if period is Period.DAILY else 7)
    years, month = divmod(first.month - 1 + number, 12)
    year = first.year + years
    return first.replace(year=year, month=month + 1, day=min(first.day, calendar.monthrange(year, month + 1)[1]))


@dataclass(frozen=True, kw_only=True)
class RoundSchedule:
    """Rounds, or grants, that the server opens by the calendar.

    `terms`: what each is to be, without a closing time. `open_seconds`: how long after its opening each closes; 0:
    when the next one is opened. `yearly_budget`: the most that all of them opened in one calendar year (UTC) may
    cost the people in the table. `next_time`: when the next one is due; None once it was stopped. `round_ids`: the
    last 12 that it opened, newest first. `problem`: why the last that was due was not opened; empty where it was.
    """

    id: str
    terms: Terms
    period: Period
    first_time: datetime
    open_seconds: int
    yearly_budget: Budget
    create_time: datetime
    stop_time: datetime | None = None
    next_time: datetime | None = None
    round_ids: tuple[str, ...] = ()
    problem: str = ""
