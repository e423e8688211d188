"""Dates and times in ISO 8601, and the whole seconds since 1970-01-01 00:00 UTC that stand for them as edges.

A date is its midnight. A time without an offset is taken for UTC, and one with an offset is converted, so that the
same file means the same on every machine.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from equipoise.errors import InvalidArgument

# Years have four digits, and nothing is left out between the parts. RE2, which reads tables, reads it alike.
ISO_8601 = (
    "[0-9]{4}-[0-9]{2}-[0-9]{2}"
    "(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]+)?)?"
    "(?:Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?"
)
_ISO_8601 = re.compile(ISO_8601)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)


def seconds_of(field: str, value: str | date) -> float:
    """Returns the seconds that stand for a date or time. Raises `InvalidArgument`, naming `field`.

    Args:
        field: what messages name.
        value: a text in ISO 8601, or a date or time; one without a time zone is in UTC.

    Returns:
        Seconds since 1970-01-01 in UTC, negative before.
    """
    moment = _read(value) if isinstance(value, str) else value
    if moment is None:
        raise InvalidArgument(field, f"is {value!r}, no date in ISO 8601 such as 2013-01-31 or 2013-01-31T12:00")
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if moment.microsecond:
        raise InvalidArgument(field, "has a fraction of a second; edges are whole seconds")
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    return check_seconds(field, seconds / timedelta(seconds=1))


def _read(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if _ISO_8601.fullmatch(text) else None
    except ValueError:
        return None


def check_seconds(field: str, seconds: float) -> float:
    """Returns whole seconds in the years 1 to 9999. Raises `InvalidArgument`, naming `field`.

    Args:
        field: what messages name.
        seconds: since 1970-01-01 in UTC.
    """
    if not (_FIRST <= seconds <= _LAST and float(seconds).is_integer()):
        raise InvalidArgument(field, "must be a whole second of the years 1 to 9999")
    return float(seconds)


def date_text(seconds: float) -> str:
    """Returns the date that whole seconds stand for, and its time in UTC unless that is midnight."""
    moment = (_EPOCH + timedelta(seconds=int(seconds))).replace(tzinfo=None)
    if moment.time() == time():
        return moment.date().isoformat()
    return moment.isoformat(timespec="seconds" if moment.second else "minutes")
