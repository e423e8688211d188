"""Token buckets, which limit how often something may happen, on average and at once."""

from __future__ import annotations

TOO_OFTEN = "too many calls of yours in a short time"  # the same words for every caller
SECONDS_BETWEEN_LINES = 60


class Bucket:
    """A token bucket, full at first: up to `burst` tokens, `rate` new ones a second. Times are in seconds."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._filled = now

    def take(self, now: float) -> float:
        """Take a token and return 0; without a token, return the seconds until the next one and take nothing."""
        self._tokens = min(self._burst, self._tokens + self._rate * (now - self._filled))
        self._filled = now
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate
        self._tokens -= 1
        return 0.0


def once_a_minute(now: float) -> Bucket:
    """Return a bucket for log lines about one caller, so that a flood of calls is no flood of lines."""
    return Bucket(1 / SECONDS_BETWEEN_LINES, 1, now)
