"""Exchanges the codes of the device flow for ID tokens, at the identity provider itself.

The device flow has no nonce, so what its tokens say binds them to no key. They are bound by who asks for them: the
server has the token from the provider, over TLS, for a code that came in one message with the signing request, and
that the provider exchanges once. A token that somebody brings is never taken for one of these.

Source: RFC 8628, sections 3.4 and 3.5.
"""

from __future__ import annotations

import hashlib
import string
import threading
from collections import OrderedDict

import structlog

from equipoise.clients.provider import ProviderFailed, description, fetched
from equipoise.errors import TooFast, Unavailable, WrongState
from equipoise_server.identity.login_tokens import BadToken

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
MAX_CODE = 4096  # characters
MAX_KEPT = 256
MORE_SECONDS = 5.0  # that the standard asks for where the provider is asked too often
_CODE = frozenset(string.printable) - frozenset(string.whitespace)
_log = structlog.get_logger("equipoise.login")


class DeviceCodes:
    """The codes of one deployment at one provider. Safe to use from several threads."""

    def __init__(self, issuer: str, client: str) -> None:
        self._issuer = issuer
        self._client = client
        self._had: OrderedDict[bytes, str] = OrderedDict()
        self._lock = threading.Lock()

    def token(self, code: str) -> str:
        """Return the ID token for a code; for the same code the same token, so that a lost answer does no harm.

        Args:
            code: That the provider gave for this deployment's client.

        Raises:
            WrongState: Nobody has typed the code yet.
            TooFast: The provider wants to be asked less often.
            BadToken: The provider gives no token for it.
            Unavailable: The provider cannot be asked now.
        """
        if len(code) > MAX_CODE or not _CODE.issuperset(code):
            raise BadToken("no device code")
        digest = hashlib.sha256(code.encode()).digest()
        with self._lock:
            if digest in self._had:
                return self._had[digest]
        token = self._exchanged(code)
        with self._lock:
            self._had[digest] = token
            if len(self._had) > MAX_KEPT:
                self._had.popitem(last=False)
        return token

    def _exchanged(self, code: str) -> str:
        form = {"grant_type": GRANT, "device_code": code, "client_id": self._client}
        try:
            token = fetched(description(self._issuer).token, form).get("id_token")
        except ProviderFailed as error:
            match error.code:
                case "authorization_pending":
                    raise WrongState("nobody has typed the code yet") from None
                case "slow_down":
                    raise TooFast("the provider is asked too often", retry_seconds=MORE_SECONDS) from None
                case "":
                    _log.warning("provider_not_reached", problem=str(error))
                    raise Unavailable("the identity provider cannot be reached by the server; try again") from None
            raise BadToken(f"a device code for which the provider says {error.code[:64]!a}") from None
        if not isinstance(token, str):
            raise BadToken("a device code for which the provider gives no ID token")
        return token
