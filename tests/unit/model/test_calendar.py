"""When openings by the calendar are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from equipoise.model.calendar import Period, opening_time

LAST = datetime(2027, 1, 31, 6, 30, tzinfo=UTC)


def test_months_end_where_they_end_and_years_follow() -> None:
    due = [opening_time(LAST, Period.MONTHLY, number) for number in range(14)]
    assert [(each.year, each.month, each.day) for each in due[:4]] == [
        (2027, 1, 31),
        (2027, 2, 28),
        (2027, 3, 31),
        (2027, 4, 30),
    ]
    assert (due[12], due[13]) == (LAST.replace(year=2028), datetime(2028, 2, 29, 6, 30, tzinfo=UTC))
    assert all((each.hour, each.minute) == (6, 30) for each in due)


def test_days_and_weeks_are_of_one_length() -> None:
    assert opening_time(LAST, Period.DAILY, 3) == LAST + timedelta(days=3)
    assert opening_time(LAST, Period.WEEKLY, 3) == LAST + timedelta(days=21)
