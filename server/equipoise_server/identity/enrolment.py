"""Reads the public key, and nothing else, from an analyst's certificate request."""

from __future__ import annotations

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec

from equipoise.errors import InvalidArgument
from equipoise.profile.certificates import read_request

MAX_REQUEST_BYTES = 16_384
_FIELD = "signing_request"


def requested_key(signing_request: bytes) -> ec.EllipticCurvePublicKey:
    """Return the public key of a PKCS #10 request in PEM, after checking that the sender holds the private key.

    Subject and requested extensions are ignored, because the operator gives the name. Keys must be on P-256 or
    P-384. Ed25519 is refused: gRPC's TLS does not offer it for certificates, so the analyst could never connect.
    Raises `InvalidArgument` naming `signing_request`.
    """
    if len(signing_request) > MAX_REQUEST_BYTES:
        raise InvalidArgument(_FIELD, f"is longer than {MAX_REQUEST_BYTES:,} bytes")
    try:
        request = read_request(signing_request)
    except ValueError as error:
        raise InvalidArgument(_FIELD, str(error)) from None
    key = request.public_key()
    # The key is checked before the signature: an unexpected key must not reach the signature code.
    if not (isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1 | ec.SECP384R1)):
        raise InvalidArgument(_FIELD, "must have a key on the curve P-256 or P-384")
    try:
        proven = request.is_signature_valid
    except (ValueError, UnsupportedAlgorithm):
        proven = False
    if not proven:
        raise InvalidArgument(_FIELD, "is not signed by its own key")
    return key
