"""Limits the calls with certificates that are refused, for which no caller's limits can count.

Each certificate is counted separately, from its first refused call on. So refusals never limit other callers, and a
stolen certificate that was revoked does not limit its owner, who has a new one. Beyond the limit the server looks
nothing up and logs at most one line a minute for each certificate.
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
    """The refused certificates of one server, to be used in one event loop.

    A refused certificate may be shown `per_second` times a second on average, and those of `burst_seconds` at once.
    """

    def __init__(
        self, per_second: float, burst_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._at_once = max(1, per_second * burst_seconds)
        self._clock = clock
        # By serial number, which is signed: so there are at most as many entries as issued certificates.
        self._known: dict[str, _Refused] = {}

    @contextmanager
    def counted(self, credential: Credential) -> Iterator[None]:
        """Count a refusal of the credential, if the look-up in the context raises `NotAuthenticated`.

        Raises:
            TooFast: The credential was refused too often in a short time.
        """
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
        # The certificate is accepted now, for example after a clock was set right: its holder's own limits apply.
        self._known.pop(serial, None)
