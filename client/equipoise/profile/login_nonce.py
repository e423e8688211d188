"""What binds an ID token to a key: both sides compute the nonce of a login from the key that is to be certified.

Whoever steals the token on its way cannot use it: the certificate is for this key, whose private part stays here.
"""

from __future__ import annotations

import base64
import hashlib

from cryptography.hazmat.primitives import serialization

from equipoise.errors import InvalidArgument
from equipoise.profile.certificates import read_request

_DOMAIN = b"equipoise login v1\n"


def nonce_of(public_key: bytes) -> str:
    """Return the nonce of a login.

    Args:
        public_key: the key to be certified, as DER of its SubjectPublicKeyInfo.

    Returns:
        SHA-256 of `equipoise login v1`, a line feed and the key, in base64url without padding: 43 characters.
    """
    return base64.urlsafe_b64encode(hashlib.sha256(_DOMAIN + public_key).digest()).rstrip(b"=").decode()


def nonce_of_request(signing_request: bytes) -> str:
    """Return the nonce of a login with a PKCS #10 request in PEM. Raises `InvalidArgument`."""
    try:
        key = read_request(signing_request).public_key()
    except ValueError as error:
        raise InvalidArgument("signing_request", str(error)) from None
    return nonce_of(key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo))
