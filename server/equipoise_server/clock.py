"""The only source of time in the server, and the public grid on which releases happen."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]
Elapsed = Callable[[], float]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def system_clock() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


def seconds_since_boot() -> float:
    """Return the seconds since the machine started, including sleep. Setting the clock does not change them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def next_grid_point(moment: datetime, grid_seconds: int) -> datetime:
    """Return the first multiple of `grid_seconds` since 1970 that is later than `moment`."""
    grid = timedelta(seconds=grid_seconds)
    return EPOCH + ((moment - EPOCH) // grid + 1) * grid
