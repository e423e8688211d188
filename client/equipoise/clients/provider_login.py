"""Gets an ID token from an identity provider, by a browser on this machine or by a code that is typed on another.

A browser ends with a token for this deployment's client whose `nonce` is of the key that is to be certified. A code
has no nonce: it is exchanged by the custodian's server, with which the key is. The token is not checked here: the
server believes it or not. It is never written to a file.

Sources: RFC 7636 (PKCE), RFC 8252 (loopback redirection), RFC 8628 (device flow), OpenID Connect Core 1.0.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import secrets
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.clients.provider import Description, ProviderFailed, fetched

SCOPE = "openid"
WAIT_SECONDS = 300.0  # for somebody who logs in
MIN_INTERVAL, USUAL_INTERVAL = 1.0, 5.0
_DONE = b"You are logged in. You can close this page.\n"
_FAILED = b"The login has failed. The terminal says more.\n"


def by_browser(
    provider: Description,
    client: str,
    nonce: str,
    open_page: Callable[[str], object],
    seconds: float = WAIT_SECONDS,
) -> str:
    """Log in with a browser on this machine, which the provider sends back to a port of loopback.

    Args:
        provider: Where its parts are.
        client: The deployment's identifier there.
        nonce: Of the key that is to be certified.
        open_page: Shows a page to the person.
        seconds: How long to wait for the person.

    Returns:
        The ID token.

    Raises:
        ProviderFailed: The provider refused, or nobody came back in time.
    """
    verifier, state = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    with _Listener() as listener:
        back = f"http://127.0.0.1:{listener.server_port}/"
        asked = {
            "response_type": "code",
            "client_id": client,
            "redirect_uri": back,
            "scope": SCOPE,
            "state": state,
            "nonce": nonce,
            "code_challenge": _challenge(verifier),
            "code_challenge_method": "S256",
        }
        separator = "&" if urllib.parse.urlsplit(provider.authorization).query else "?"
        open_page(provider.authorization + separator + urllib.parse.urlencode(asked))
        code = listener.code(state, seconds)
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back}
    return _id_token(fetched(provider.token, form | {"client_id": client, "code_verifier": verifier}))


@dataclass(frozen=True)
class DeviceCode:
    """A device code of the provider, which the custodian's server exchanges for an ID token.

    Attributes:
        code: The device code, which only this client knows.
        seconds: How long the provider waits for somebody to type the short code.
        interval: How many seconds to wait between two questions.
    """

    code: str
    seconds: float
    interval: float


def by_device(provider: Description, client: str, tell: Callable[[str, str], object]) -> DeviceCode:
    """Begin a login with a browser on any other machine, by typing a short code there.

    Args:
        provider: Where its parts are.
        client: The deployment's identifier there.
        tell: Tells the person the page and the code.

    Returns:
        What the server exchanges once the short code was typed.

    Raises:
        ProviderFailed: The provider has no such way, or refused.
    """
    if not provider.device:
        raise ProviderFailed("it offers no login by a code; leave out --device")
    begun = fetched(provider.device, {"client_id": client, "scope": SCOPE})
    try:
        tell(str(begun.get("verification_uri_complete") or begun["verification_uri"]), str(begun["user_code"]))
        interval = max(MIN_INTERVAL, float(begun.get("interval", USUAL_INTERVAL)))
        return DeviceCode(str(begun["device_code"]), float(begun["expires_in"]), interval)
    except (KeyError, TypeError, ValueError):
        raise ProviderFailed("its answer lacks a code, a page or a time") from None


def _id_token(answer: Mapping[str, Any]) -> str:
    token = answer.get("id_token")
    if not isinstance(token, str) or not token.isascii():
        raise ProviderFailed("it issued no ID token")
    return token


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


class _Listener(http.server.HTTPServer):
    """Waits on loopback for the browser to come back with the code."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[dict[str, str]] = []
        self.expected = ""

    def code(self, state: str, seconds: float) -> str:
        """Return the code that came with this state. Raises `ProviderFailed`."""
        self.expected, end = state, time.monotonic() + seconds
        while not self.answers:
            self.timeout = end - time.monotonic()
            if self.timeout <= 0:
                raise ProviderFailed("nobody logged in in time")
            self.handle_request()
        answer = self.answers[0]
        if "code" not in answer:
            raise ProviderFailed(f"it refused: {answer.get('error', 'no code came back')}", answer.get("error", ""))
        return answer["code"]


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Listener
    timeout = 5  # seconds, for a connection that sends nothing

    def do_GET(self) -> None:
        parts = urllib.parse.urlsplit(self.path)
        answer = dict(urllib.parse.parse_qsl(parts.query))
        # Anybody on this machine can reach the port: only who knows the state has been at the provider.
        if parts.path != "/" or not secrets.compare_digest(answer.get("state", ""), self.server.expected):
            self.send_error(404)
            return
        self.server.answers.append(answer)
        told = _DONE if "code" in answer else _FAILED
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_: object) -> None:
        """Say nothing: the request holds the code."""
