"""The public keys of the identity provider that the configuration names, fetched over HTTPS and kept for a while.

Where they lie is read from the provider's own description, below its identifier. Nothing of a token says where a
key is: a token only names one, and a name that is not known has the keys fetched again, at most once in a while.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from equipoise.clients.provider import ProviderFailed, description, fetched
from equipoise.errors import Unavailable

KEEP_SECONDS = 600.0  # keys that the provider has withdrawn are not believed for longer
AGAIN_SECONDS = 30.0  # between two fetches, also where strangers name keys that there are not
AGAIN_AFTER_FAILURE_SECONDS = 5.0
MAX_KEYS = 64
_log = structlog.get_logger("equipoise.login")

Jwk = Mapping[str, Any]


class ProviderKeys:
    """The signing keys of one provider. Safe to use from several threads."""

    def __init__(self, issuer: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._clock = clock
        self._keys: tuple[Jwk, ...] = ()
        self._fetched = self._tried = float("-inf")
        self._reached = True
        self._lock = threading.Lock()

    def named(self, key_id: str) -> list[Jwk]:
        """Return the keys with an identifier.

        Raises:
            Unavailable: None are known and the provider cannot be asked now.
        """
        with self._lock:
            found = self._kept_keys(key_id)
            if found:
                return found
            now = self._clock()
            if now - self._tried >= (AGAIN_SECONDS if self._reached else AGAIN_AFTER_FAILURE_SECONDS):
                self._tried, self._reached = now, False
                try:
                    self._keys, self._fetched, self._reached = self._fetch(), now, True
                except ProviderFailed as error:
                    _log.warning("provider_not_reached", problem=str(error))
            if not self._reached:
                raise Unavailable("the identity provider cannot be reached by the server; try again")
            return self._kept_keys(key_id)

    def _kept_keys(self, key_id: str) -> list[Jwk]:
        if self._clock() - self._fetched > KEEP_SECONDS:
            return []
        return [key for key in self._keys if key.get("kid") == key_id]

    def _fetch(self) -> tuple[Jwk, ...]:
        keys = fetched(description(self._issuer).keys).get("keys")
        if not isinstance(keys, list) or len(keys) > MAX_KEYS or not all(isinstance(each, dict) for each in keys):
            raise ProviderFailed("its keys are no JWK set")
        return tuple(keys)
