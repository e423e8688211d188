"""The rates of each caller's calls. Every caller is counted separately, so none delays another.

A refusal depends only on the caller's own calls and the configuration, and its text is always the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import structlog

from equipoise.errors import TooFast
from equipoise_server.identity.policy import POLICY, MethodPolicy, Rate, rate_of
from equipoise_server.rpc.interceptors.token_bucket import TOO_OFTEN, Bucket, once_a_minute

_log = structlog.get_logger("equipoise.rpc")


class CallRates:
    """The token buckets of all callers, one for each kind of call; never removed, as few names are admitted.

    Args:
        per_second: How many calls of each kind a caller may make on average.
        burst_seconds: How many seconds' worth of calls a caller may make at once.
        policy: The row of each method.
        clock: In seconds, from any start.
    """

    def __init__(
        self,
        per_second: Mapping[Rate, float],
        burst_seconds: float,
        policy: Mapping[str, MethodPolicy] = POLICY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = per_second
        self._burst_seconds = burst_seconds
        self._policy = policy
        self._clock = clock
        self._buckets: dict[str, dict[Rate, Bucket]] = {}
        self._lines: dict[str, Bucket] = {}

    def take(self, name: str, method: str) -> None:
        """Count a call of a caller's. Raises `TooFast`, which says when to try again, and counts nothing then."""
        now = self._clock()
        if name not in self._buckets:
            self._buckets[name] = {
                kind: Bucket(rate, max(1, rate * self._burst_seconds), now)
                for kind, rate in self._per_second.items()
            }
        if wait := self._buckets[name][rate_of(method, self._policy)].take(now):
            refusal = TooFast(TOO_OFTEN, retry_seconds=wait)
            self.log(name, refusal)
            raise refusal

    def log(self, name: str, refusal: TooFast) -> None:
        """Log that a caller's call is refused, once a minute, so that a flood of calls is no flood of lines."""
        now = self._clock()
        if name not in self._lines:
            self._lines[name] = once_a_minute(now)
        if not self._lines[name].take(now):
            _log.warning("limited", caller=name, problem=refusal.message)
