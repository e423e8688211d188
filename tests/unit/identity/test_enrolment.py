"""What is taken from a certificate request, and what is refused."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.x509.oid import NameOID

from equipoise.errors import InvalidArgument
from equipoise_server.identity.enrolment import MAX_REQUEST_BYTES, requested_key

PrivateKey = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey | rsa.RSAPrivateKey


def signing_request(key: PrivateKey, encoding: serialization.Encoding = serialization.Encoding.PEM) -> bytes:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "operator")])
    edwards = isinstance(key, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey)
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    return builder.sign(key, None if edwards else hashes.SHA256()).public_bytes(encoding)


@pytest.mark.parametrize(
    "key",
    [ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())],
)
def test_accepted_keys(key: ec.EllipticCurvePrivateKey) -> None:
    assert requested_key(signing_request(key)) == key.public_key()


@pytest.mark.parametrize(
    "key",
    [
        ec.generate_private_key(ec.SECP521R1()),
        ec.generate_private_key(ec.SECP256K1()),
        ed25519.Ed25519PrivateKey.generate(),
        ed448.Ed448PrivateKey.generate(),
        rsa.generate_private_key(65_537, 2048),
    ],
)
def test_other_keys_are_refused(key: PrivateKey) -> None:
    with pytest.raises(InvalidArgument, match=r"^signing_request: must have a key on"):
        requested_key(signing_request(key))


def test_a_request_not_signed_by_its_own_key_is_refused() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    other = ec.generate_private_key(ec.SECP256R1())
    mine, theirs = (signing_request(k, serialization.Encoding.DER) for k in (key, other))
    point, stranger = (
        k.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        for k in (key, other)
    )
    assert point in mine
    assert stranger in theirs
    swapped = x509.load_der_x509_csr(mine.replace(point, stranger))
    with pytest.raises(InvalidArgument, match="is not signed by its own key"):
        requested_key(swapped.public_bytes(serialization.Encoding.PEM))


@pytest.mark.parametrize("content", [b"", b"garbage", b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n"])
def test_garbage_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidArgument, match="is not a PKCS #10"):
        requested_key(content)


def test_long_requests_are_refused_before_parsing() -> None:
    with pytest.raises(InvalidArgument, match="longer than"):
        requested_key(b"-" * (MAX_REQUEST_BYTES + 1))
