"""Waits for what another thread, process or server does, and leaves it the processor meanwhile.

    until(lambda: bench.state(round_id) is RoundState.RELEASED)

Where many tests share few cores, every look costs what is waited for its time: a look at a round takes as long
as a pause of a hundredth of a second. So pauses grow with the time that was waited.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

PATIENCE = 300.0  # seconds; far longer than anything takes on an idle machine
FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5  # seconds
PART = 8  # a pause is this part of what was waited so far


def pauses(seconds: float = PATIENCE) -> Iterator[float]:
    """Yield how long to pause before the next look; fails once that many seconds have passed."""
    start = time.monotonic()
    while (waited := time.monotonic() - start) < seconds:
        yield min(LONGEST_PAUSE, max(FIRST_PAUSE, waited / PART))
    raise AssertionError(f"what was waited for did not come within {seconds} s")


def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until a condition holds."""
    pause = pauses(seconds)
    while not condition():
        time.sleep(next(pause))


async def eventually(condition: Callable[[], Awaitable[object]], seconds: float = PATIENCE) -> None:
    """Wait until a condition holds that has to be awaited."""
    pause = pauses(seconds)
    while not await condition():
        await asyncio.sleep(next(pause))
