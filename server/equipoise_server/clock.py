"""The one door for time, and the public grid on which releases happen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def system_clock() -> datetime:
    """Now, in UTC."""
    return datetime.now(UTC)


def next_grid_point(time: datetime, grid_seconds: int) -> datetime:
    """The first multiple of `grid_seconds` since 1970 that is later than `time`."""
    grid = timedelta(seconds=grid_seconds)
    return EPOCH + ((time - EPOCH) // grid + 1) * grid
