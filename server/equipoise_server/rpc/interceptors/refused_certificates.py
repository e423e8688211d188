"""How often calls are refused for who makes them, before anyone is found whose limits could count.

Counted for each certificate by itself, and only once a call with it was refused. So nobody's refusals limit others'
calls, and a revoked certificate in a thief's hands does not limit its holder, who has a new one. Beyond the limit
nothing is looked up, and nothing is logged but one line a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from equipoise.errors import NotAuthenticated, TooFast
from equipoise_server.identity.credential import Credential
from equipoise_server.rpc.interceptors.token_bucket import TOO_OFTEN, Bucket, once_a_minute

_log = structlog.get_logger("equipoise.rpc")


@dataclass(frozen=True)
class _Refused:
    calls: Bucket
    lines: Bucket


class Refusals:
    """Of one server: so many a second on average, `burst_seconds` of them at once. Belongs to its event loop."""

    def __init__(
        self, per_second: float, burst_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._at_once = max(1, per_second * burst_seconds)
        self._clock = clock
        # By serial number, which is signed: there are no more than certificates that the authority has issued.
        self._known: dict[str, _Refused] = {}

    @contextmanager
    def counted(self, credential: Credential) -> Iterator[None]:
        """Surrounds finding out whose credential it is. `TooFast` where it was refused too often just before."""
        serial, now = credential.id, self._clock()
        known = self._known.get(serial)
        if known is not None and (wait := known.calls.take(now)):
            if not known.lines.take(now):
                _log.warning("limited", certificate=serial, problem=TOO_OFTEN)
            raise TooFast(TOO_OFTEN, retry_seconds=wait)
        try:
            yield
        except NotAuthenticated:
            if known is None:
                known = _Refused(Bucket(self._per_second, self._at_once, now), once_a_minute(now))
                known.calls.take(now)
                self._known.setdefault(serial, known)
            raise
        # What was wrong, such as a clock, is so no longer; from here on its holder's own limits count.
        self._known.pop(serial, None)
