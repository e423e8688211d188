"""A key and its certificate in two files that are exchanged together, so that a crash leaves one pair or the other.

    NAME.pem        the certificate, which says which key is in force
    NAME.key        its private key (0600)
    NAME.key.new    the next key, which is in force as soon as NAME.pem is its certificate

The certificate's file is replaced in one step, between the making of the next key and its move to its place.
Whoever reads the pair takes the one of the two keys that fits.
"""

from __future__ import annotations

from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from equipoise.errors import InvalidArgument
from equipoise.profile.certificates import read_certificates
from equipoise_server.identity.keyfiles import read_private, write_private
from equipoise_server.storage.crash_points import CrashPoint, reached
from equipoise_server.storage.durable import sync_directory, sync_file

READINGS = 3  # of a pair that is exchanged meanwhile: at most once, and then it stays


def read_pair(
    certificate_path: Path, key_path: Path, mismatch: str
) -> tuple[list[x509.Certificate], ec.EllipticCurvePrivateKey]:
    """Read a private key and its certificates.

    Args:
        certificate_path: The certificates in PEM, that of the key first.
        key_path: The private key in PEM, which only its owner may read.
        mismatch: What errors say of a key that is not the first certificate's.

    Returns:
        All certificates of the file, and the key.

    Raises:
        InvalidArgument: Naming the file that is missing, open to others, or not of the other.
    """
    for _ in range(READINGS):
        certificates = load_certificates(certificate_path)
        public = certificates[0].public_key()
        for path in (_next(key_path), key_path):
            if (path == key_path or path.exists()) and (key := _load_key(path)).public_key() == public:
                return certificates, key
    raise InvalidArgument(str(key_path), mismatch)


def replace_pair(certificate_path: Path, certificates: bytes, key_path: Path, key: bytes) -> None:
    """Put a key and its certificates, both in PEM, in the place of those that are there, durably.

    After a crash `read_pair` reads the old pair or the new one.

    Args:
        certificate_path: where the certificates are.
        certificates: of the key first, then those above it.
        key_path: where the private key is.
        key: the private key.
    """
    prepared = certificate_path.with_name(f"{certificate_path.name}.new")
    _next(key_path).unlink(missing_ok=True)
    write_private(_next(key_path), key)
    prepared.write_bytes(certificates)
    sync_file(prepared)
    sync_directory(key_path.parent)
    reached(CrashPoint.PAIR_PREPARED)
    prepared.replace(certificate_path)
    sync_directory(certificate_path.parent)
    reached(CrashPoint.PAIR_EXCHANGED)
    _next(key_path).replace(key_path)
    sync_directory(key_path.parent)


def load_certificates(path: Path) -> list[x509.Certificate]:
    """Return the certificates in a PEM file, at least one, or raise `InvalidArgument` naming the file."""
    try:
        return read_certificates(path.read_bytes())
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None
    except ValueError:
        raise InvalidArgument(str(path), "holds no certificate in PEM") from None


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the private key in a PEM file that only its owner may open, or `InvalidArgument` naming the file."""
    try:
        key = serialization.load_pem_private_key(read_private(path), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InvalidArgument(str(path), "holds no unencrypted elliptic-curve key in PEM")
    return key


def _next(key_path: Path) -> Path:
    return key_path.with_name(f"{key_path.name}.new")
