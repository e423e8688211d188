"""Checks the ID token that an identity provider has issued: the one thing that a login is believed for.

Whatever is wrong with a token raises `BadToken`, whose text is for the server's log alone: callers are told the
same for every token, so that nobody learns by trying which check comes next.

Source: OpenID Connect Core 1.0, section 3.1.3.7, taken strictly: one audience, no header but those listed here.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from equipoise.errors import InvalidArgument
from equipoise.profile.login_nonce import nonce_of
from equipoise.queries.strict_json import parse_json

ALGORITHMS = ("RS256", "ES256", "EdDSA", "Ed25519")  # the last two are one, in its older and its newer name
# A key in the token (jwk, x5c), an address of one (jku, x5u) or a critical extension (crit) is refused unread.
HEADERS = frozenset({"alg", "kid", "typ"})
TYPES = frozenset({"JWT", "jwt"})
MAX_TOKEN = 16_384  # bytes
MAX_SUBJECT = 255  # characters, as in the standard
SKEW_SECONDS = 60  # by which the provider's clock may differ
MAX_AGE_SECONDS = 600  # since the token was issued: it is spent at once
MIN_RSA_BITS = 2048
_SUBJECT = frozenset(string.printable) - frozenset(string.whitespace) | {" "}


class BadToken(Exception):
    """A token that is refused, with the reason for the log."""


@dataclass(frozen=True)
class Account:
    """An account at an identity provider: the provider's identifier, and the account's at that provider."""

    issuer: str
    subject: str

    @property
    def digest(self) -> bytes:
        """What stands for it on record: SHA-256 of both, so that records name no person."""
        parts = json.dumps(["equipoise login account v1", self.issuer, self.subject])
        return hashlib.sha256(parts.encode()).digest()


def check_extra() -> None:
    """Raise `InvalidArgument` where the packages that read tokens are not installed."""
    if find_spec("joserfc") is None:
        raise InvalidArgument("login_listen", "needs: pip install 'equipoise[oidc]'")


def check_subject(subject: str) -> str:
    """Return `subject` if it may be an account's. Raises `InvalidArgument` naming `subject`."""
    if not 1 <= len(subject) <= MAX_SUBJECT or not _SUBJECT.issuperset(subject):
        raise InvalidArgument("subject", f"must be 1 to {MAX_SUBJECT} printable ASCII characters")
    return subject


def account_of(
    token: str,
    keys: Callable[[str], Sequence[Mapping[str, Any]]],
    issuer: str,
    audience: str,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    of_device: bool = False,
) -> Account:
    """Return the account that a token was issued for.

    Args:
        token: The ID token, a JWS in compact serialisation.
        keys: Gives the provider's public keys (JWKs) with an identifier, which the token names.
        issuer: The provider's identifier, compared character by character.
        audience: The identifier that this deployment has at the provider.
        key: Of the signing request that came with the token: the nonce must be of this key.
        now: The time.
        of_device: Whether the server itself had the token from the provider, for a device code that came with the
            signing request. Then it may lack the nonce, which that flow has not; one that it has is checked.

    Raises:
        BadToken: The token is not what the provider issues for this key, to this deployment, now.
    """
    claims = _object(_verified(token, keys), "claims")
    if claims.get("iss") != issuer:
        raise BadToken("another issuer")
    # Several audiences would let another application's token in here.
    if claims.get("aud") not in (audience, [audience]) or claims.get("azp", audience) != audience:
        raise BadToken("another audience")
    _check_times(claims, now.timestamp())
    own = nonce_of(key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo))
    nonce = claims.get("nonce", own if of_device else None)
    if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), own.encode()):
        raise BadToken("a nonce of another key")
    subject = claims.get("sub")
    if not isinstance(subject, str):
        raise BadToken("no subject")
    try:
        return Account(issuer, check_subject(subject))
    except InvalidArgument:
        raise BadToken("a subject that is none") from None


def _verified(token: str, keys: Callable[[str], Sequence[Mapping[str, Any]]]) -> bytes:
    """Return the payload of a token that one of the provider's keys has signed."""
    if len(token) > MAX_TOKEN or token.count(".") != 2 or not token.isascii():
        raise BadToken("no compact JWS")
    head = _object(_decoded(token.partition(".")[0]), "header")
    if unknown := sorted(head.keys() - HEADERS):
        raise BadToken(f"the header {unknown[0][:32]!a}")
    algorithm, key_id = head.get("alg"), head.get("kid")
    if algorithm not in ALGORITHMS:
        raise BadToken("an algorithm that is not allowed")
    if not isinstance(key_id, str) or head.get("typ", "JWT") not in TYPES:
        raise BadToken("no key identifier, or another type")
    fitting = [each for each in keys(key_id) if _fits(each, str(algorithm))]
    if len(fitting) != 1:
        raise BadToken("no key of the provider")
    return _signed_by(fitting[0], token)


def _signed_by(key: Mapping[str, Any], token: str) -> bytes:
    from joserfc import errors, jwk, jws  # noqa: PLC0415  # of the extra `oidc`, for servers that offer logins

    class Allowed(jws.JWSRegistry):
        """The algorithms of this module, of which joserfc would warn of one under its older name."""

        max_payload_length = MAX_TOKEN

        def get_alg(self, name: str) -> Any:
            if name not in ALGORITHMS:
                raise errors.UnsupportedAlgorithmError(name)
            return self.algorithms[name]

    try:
        return jws.deserialize_compact(token, jwk.import_key(dict(key)), registry=Allowed()).payload
    except (errors.JoseError, ValueError, TypeError, KeyError):
        raise BadToken("the signature") from None


def _fits(key: Mapping[str, Any], algorithm: str) -> bool:
    """Tell whether a key is for this algorithm and for signatures: a public key is never taken for a secret."""
    if key.get("use", "sig") != "sig" or key.get("alg", algorithm) != algorithm:
        return False
    if algorithm == "RS256":
        return key.get("kty") == "RSA" and _bits(key.get("n")) >= MIN_RSA_BITS
    if algorithm == "ES256":
        return (key.get("kty"), key.get("crv")) == ("EC", "P-256")
    return (key.get("kty"), key.get("crv")) == ("OKP", "Ed25519")


def _bits(number: object) -> int:
    try:
        return int.from_bytes(_decoded(str(number)), "big").bit_length()
    except BadToken:
        return 0


def _check_times(claims: Mapping[str, Any], now: float) -> None:
    times = {name: claims.get(name, now) for name in ("exp", "iat", "nbf")}
    numbers = all(type(each) in (int, float) for each in times.values())
    if not numbers or not {"exp", "iat"} <= claims.keys():
        raise BadToken("no times")
    if times["exp"] < now - SKEW_SECONDS or times["iat"] < now - MAX_AGE_SECONDS:
        raise BadToken("expired")
    if max(times["iat"], times["nbf"]) > now + SKEW_SECONDS:
        raise BadToken("not valid yet")


def _decoded(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise BadToken("no base64") from None


def _object(content: bytes, what: str) -> dict[str, Any]:
    try:
        value = parse_json(content.decode("utf-8"), what)
    except (InvalidArgument, UnicodeDecodeError):
        raise BadToken(f"{what} that are no JSON") from None
    if not isinstance(value, dict):
        raise BadToken(f"{what} that are no JSON object")
    return value
