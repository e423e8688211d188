"""ID tokens: only what the provider issued, for this deployment and this key, now; every other is refused."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from equipoise.errors import InvalidArgument
from equipoise.profile.login_nonce import nonce_of
from equipoise_server.identity.login_tokens import Account, BadToken, account_of, check_subject

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SECONDS = int(NOW.timestamp())
ISSUER, CLIENT = "https://login.example/tenant-1", "equipoise"
RSA_KEY = rsa.generate_private_key(65537, 2048)
SHORT_KEY = rsa.generate_private_key(65537, 1024)  # too short, which is the point
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()
REQUESTED = ec.generate_private_key(ec.SECP256R1()).public_key()


def spki(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def b64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def number(value: int, length: int | None = None) -> str:
    return b64(value.to_bytes(length or (value.bit_length() + 7) // 8, "big"))


def rsa_jwk(key: rsa.RSAPrivateKey, kid: str) -> dict[str, str]:
    numbers = key.public_key().public_numbers()
    return {"kty": "RSA", "kid": kid, "n": number(numbers.n), "e": number(numbers.e)}


POINT = EC_KEY.public_key().public_numbers()
KEYS: list[dict[str, str]] = [
    rsa_jwk(RSA_KEY, "rsa") | {"use": "sig", "alg": "RS256"},
    {"kty": "EC", "kid": "ec", "crv": "P-256", "x": number(POINT.x, 32), "y": number(POINT.y, 32)},
    {"kty": "OKP", "kid": "ed", "crv": "Ed25519", "x": b64(ED_KEY.public_key().public_bytes_raw())},
    rsa_jwk(RSA_KEY, "encryption") | {"use": "enc"},
    rsa_jwk(SHORT_KEY, "short"),
    rsa_jwk(RSA_KEY, "twice"),
    rsa_jwk(RSA_KEY, "twice"),
    {"kty": "oct", "kid": "secret", "k": b64(b"s" * 32)},
]
CLAIMS: dict[str, Any] = {
    "iss": ISSUER,
    "aud": CLIENT,
    "sub": "248289761001",
    "iat": SECONDS - 5,
    "exp": SECONDS + 300,
    "nonce": nonce_of(spki(REQUESTED)),
}


def signed_by_rsa(content: bytes, key: rsa.RSAPrivateKey = RSA_KEY) -> bytes:
    return key.sign(content, padding.PKCS1v15(), hashes.SHA256())


def signed_by_ec(content: bytes) -> bytes:
    r, s = decode_dss_signature(EC_KEY.sign(content, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def token(
    head: Mapping[str, Any] | None = None,
    sign: Callable[[bytes], bytes] = signed_by_rsa,
    **claims: Any,
) -> str:
    """One that is right but for what is said; a claim or a header of None is left out."""
    header = {"alg": "RS256", "kid": "rsa", "typ": "JWT"} | dict(head or {})
    parts = (
        {name: value for name, value in each.items() if value is not None} for each in (header, CLAIMS | claims)
    )
    content = ".".join(b64(json.dumps(each).encode()) for each in parts)
    return f"{content}.{b64(sign(content.encode()))}"


def account(given: str) -> Account:
    def named(kid: str) -> list[dict[str, str]]:
        return [each for each in KEYS if each["kid"] == kid]

    return account_of(given, named, ISSUER, CLIENT, REQUESTED, NOW)


@pytest.mark.parametrize(
    ("head", "sign"),
    [
        ({}, signed_by_rsa),
        ({"alg": "ES256", "kid": "ec"}, signed_by_ec),
        ({"alg": "EdDSA", "kid": "ed"}, ED_KEY.sign),
        ({"alg": "Ed25519", "kid": "ed", "typ": None}, ED_KEY.sign),
    ],
    ids=["RS256", "ES256", "EdDSA", "Ed25519"],
)
def test_a_token_of_the_provider_is_believed(head: dict[str, Any], sign: Callable[[bytes], bytes]) -> None:
    assert account(token(head, sign)) == Account(ISSUER, "248289761001")
    assert account(token(head, sign, aud=[CLIENT], azp=CLIENT)).subject == "248289761001"


def test_only_a_token_that_the_server_had_itself_may_lack_the_nonce() -> None:
    def of_device(given: str) -> Account:
        return account_of(given, lambda _: KEYS[:1], ISSUER, CLIENT, REQUESTED, NOW, of_device=True)

    assert of_device(token(nonce=None)) == of_device(token()) == Account(ISSUER, "248289761001")
    with pytest.raises(BadToken, match="nonce"):
        account(token(nonce=None))
    for other in (OTHERS_NONCE, "", 1):
        with pytest.raises(BadToken, match="nonce"):
            of_device(token(nonce=other))
    with pytest.raises(BadToken, match="audience"):
        of_device(token(nonce=None, aud="another"))


PUBLIC_PEM = RSA_KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
OTHERS_KEY = rsa.generate_private_key(65537, 2048)
OTHERS_NONCE = nonce_of(spki(ec.generate_private_key(ec.SECP256R1()).public_key()))


def by_other(content: bytes) -> bytes:
    return signed_by_rsa(content, OTHERS_KEY)


HOSTILE = {
    "no algorithm": token({"alg": "none"}, lambda _: b""),
    "no algorithm, in capitals": token({"alg": "NONE"}, lambda _: b""),
    "the public key taken for a secret": token(
        {"alg": "HS256"}, lambda content: hmac.digest(PUBLIC_PEM, content, "sha256")
    ),
    "a secret among the keys": token(
        {"alg": "HS256", "kid": "secret"}, lambda content: hmac.digest(b"s" * 32, content, "sha256")
    ),
    "an algorithm that is not allowed": token(
        {"alg": "RS512"}, lambda content: RSA_KEY.sign(content, padding.PKCS1v15(), hashes.SHA512())
    ),
    "a key of another algorithm": token({"alg": "ES256"}, signed_by_ec),
    "its own key": token({"jwk": rsa_jwk(OTHERS_KEY, "rsa")}, by_other),
    "where its own key is": token({"jku": "https://evil.example/keys"}, by_other),
    "its own certificate": token({"x5c": ["MIIB"]}, by_other),
    "where its own certificate is": token({"x5u": "https://evil.example/c"}, by_other),
    "a critical extension": token({"crit": ["exp"], "exp": SECONDS + 9}),
    "a payload that is not encoded": token({"b64": False, "crit": ["b64"]}),
    "another type": token({"typ": "at+jwt"}),
    "no key identifier": token({"kid": None}),
    "a key identifier that is a number": token({"kid": 1}),
    "an unknown key": token({"kid": "unknown"}),
    "a key for encryption": token({"kid": "encryption"}),
    "a short key": token({"kid": "short"}, lambda content: signed_by_rsa(content, SHORT_KEY)),
    "two keys of one name": token({"kid": "twice"}),
    "somebody else's signature": token({}, by_other),
    "no signature": token({}, lambda _: b""),
    "another issuer": token(iss="https://login.example/tenant-2"),
    "another tenant, by a slash": token(iss=f"{ISSUER}/"),
    "no issuer": token(iss=None),
    "another audience": token(aud="another"),
    "an audience beside ours": token(aud=[CLIENT, "another"]),
    "no audience": token(aud=None),
    "another party": token(azp="another"),
    "expired": token(exp=SECONDS - 61),
    "no end": token(exp=None),
    "an end that is text": token(exp=str(SECONDS + 300)),
    "an end that is true": token(exp=True),
    "issued long ago": token(iat=SECONDS - 601),
    "not issued yet": token(iat=SECONDS + 61),
    "no time of issue": token(iat=None),
    "not valid yet": token(nbf=SECONDS + 61),
    "no nonce": token(nonce=None),
    "the nonce of another key": token(nonce=OTHERS_NONCE),
    "a nonce that is a list": token(nonce=[CLAIMS["nonce"]]),
    "no subject": token(sub=None),
    "an empty subject": token(sub=""),
    "a subject that is a number": token(sub=7),
    "a subject with a line's end": token(sub="ann\n"),
    "a long subject": token(sub="a" * 256),
    "no text": "",
    "two parts": token().rpartition(".")[0],
    "five parts": token() + ".a.b",
    "no base64": "!" + token(),
    "no JSON": f"{b64(b'{')}.{b64(b'{}')}.{b64(b's')}",
    "a list": f"{b64(b'[]')}.{b64(b'{}')}.{b64(b's')}",
    "an algorithm twice": ".".join([b64(b'{"alg":"none","alg":"RS256","kid":"rsa"}'), *token().split(".")[1:]]),
    "too long": token(extra="a" * 20_000),
    "letters that are not of ASCII": token() + "é",
}


@pytest.mark.parametrize("given", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_token_is_refused(given: str) -> None:
    with pytest.raises(BadToken):
        account(given)


def test_each_altered_byte_of_a_token_is_refused() -> None:
    right = token()
    for place in range(0, len(right), 7):
        other = "A" if right[place] != "A" else "B"
        if right[place] == "." or place == len(right) - 1:
            continue
        with pytest.raises(BadToken):
            account(right[:place] + other + right[place + 1 :])


def test_the_clocks_may_differ_a_little() -> None:
    assert account(token(exp=SECONDS - 59, iat=SECONDS + 59)).subject


def test_the_nonce_is_as_the_protos_say() -> None:
    digest = hashlib.sha256(b"equipoise login v1\n" + spki(REQUESTED)).digest()
    assert nonce_of(spki(REQUESTED)) == b64(digest)


def test_accounts_of_two_providers_differ_on_record() -> None:
    digests = {Account(issuer, subject).digest for issuer in ("https://a", "https://b") for subject in ("1", "2")}
    assert len(digests) == 4
    with pytest.raises(InvalidArgument, match="subject"):
        check_subject("ann\0")
