"""Token buckets: how often something may happen, on average and at once."""

from __future__ import annotations

TOO_OFTEN = "too many calls of yours in a short time"  # whoever is told so, in the same words
SECONDS_BETWEEN_LINES = 60


class Bucket:
    """Holds up to `burst` tokens, gets `rate` a second, starts full. Time is given, in seconds of any clock."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._filled = now

    def take(self, now: float) -> float:
        """Takes a token; 0, or in how many seconds there will be one, and then nothing is taken."""
        self._tokens = min(self._burst, self._tokens + self._rate * (now - self._filled))
        self._filled = now
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate
        self._tokens -= 1
        return 0.0


def once_a_minute(now: float) -> Bucket:
    """For lines of the log about one caller, so that a flood of calls is not a flood of lines."""
    return Bucket(1 / SECONDS_BETWEEN_LINES, 1, now)
