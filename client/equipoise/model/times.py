"""How times are stored and signed: whole microseconds since 1970 in UTC, exact and the same everywhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def to_microseconds(time: datetime) -> int:
    """Returns the stored form of a time; `time` must carry a time zone."""
    return (time - EPOCH) // MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    """Returns the inverse of `to_microseconds`, in UTC."""
    return EPOCH + microseconds * MICROSECOND
