"""Reads the configuration and the answers of an identity provider: JSON over HTTPS, of bounded length."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.errors import InvalidArgument

SECONDS = 10.0  # for one answer
MAX_BYTES = 1 << 20
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
DESCRIPTION = "/.well-known/openid-configuration"


class ProviderFailed(Exception):
    """The provider cannot be reached, or answers what cannot be read; `code`: the error that it names."""

    def __init__(self, problem: str, code: str = "") -> None:
        super().__init__(problem)
        self.code = code


@dataclass(frozen=True)
class Description:
    """Where a provider's parts are; `device`: empty where it has no device flow."""

    authorization: str
    token: str
    keys: str
    device: str


def check_address(address: str, field: str) -> str:
    """Return an address that may be asked: HTTPS, or HTTP on this machine.

    Args:
        address: The address.
        field: What an error names.

    Raises:
        InvalidArgument: It is no such address.
    """
    try:
        parts = urllib.parse.urlsplit(address)
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
        usable = safe and bool(parts.hostname) and parts.username is None and not parts.fragment
        _ = parts.port
    except ValueError:
        usable = False
    if not usable or not address.isascii() or any(each.isspace() for each in address):
        raise InvalidArgument(field, "must be an https:// address; http:// is for this machine alone")
    return address


def description(issuer: str) -> Description:
    """Return what the provider with this identifier says of itself. Raises `ProviderFailed`."""
    said = fetched(issuer.rstrip("/") + DESCRIPTION)
    if said.get("issuer") != issuer:
        raise ProviderFailed("it calls itself by another identifier than the configured one")

    def address(name: str) -> str:
        return check_address(str(said[name]), name)

    try:
        device = address("device_authorization_endpoint") if "device_authorization_endpoint" in said else ""
        return Description(
            address("authorization_endpoint"), address("token_endpoint"), address("jwks_uri"), device
        )
    except KeyError as error:
        raise ProviderFailed(f"its description lacks {error.args[0]}") from None
    except InvalidArgument as error:
        raise ProviderFailed(f"its description has an address that is not safe: {error.message}") from None


def fetched(address: str, form: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the JSON object at an address.

    Args:
        address: where it is.
        form: what is posted; None: nothing, the object is only read.

    Raises:
        ProviderFailed: there is none, or the provider names an error.
    """
    data = None if form is None else urllib.parse.urlencode(form).encode()
    request = urllib.request.Request(address, data=data, headers={"Accept": "application/json"})
    try:
        opener = _DIRECT if urllib.parse.urlsplit(address).hostname in LOOPBACK else _OPENER
        with opener.open(request, timeout=SECONDS) as response:
            return _object(response.read(MAX_BYTES + 1))
    except urllib.error.HTTPError as error:
        with error:
            try:
                code = str(_object(error.read(MAX_BYTES)).get("error", ""))
            except (ProviderFailed, OSError):
                code = ""
        raise ProviderFailed(f"it answered {error.code} {code}".rstrip(), code) from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ProviderFailed(f"it cannot be reached: {getattr(error, 'reason', error)}") from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirection could lead from HTTPS to anywhere, and no part of a provider needs one."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)  # by the proxy of the environment, where there is one
_DIRECT = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({}))


def _object(content: bytes) -> dict[str, Any]:
    try:
        value = json.loads(content) if len(content) <= MAX_BYTES else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ProviderFailed("it answered with something that is no JSON object")
    return value
