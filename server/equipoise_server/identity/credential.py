"""The credential by which a caller proves its identity, made from a certificate and passed on as a `Credential`.

A credential of another kind needs a function like `credential_of`, and code that reads it from a call.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from equipoise_server.identity.authority import certificate_to_pem


@dataclass(frozen=True)
class Credential:
    """A credential as it was issued, byte by byte. The registry knows its holder and whether it is in force.

    `id`: its number, signed by the issuer; the registry's key. `content`: all of its bytes. `key`: its holder's
    public key, which equals the same key in another encoding. `expiry`: the last moment of its validity. `digest`:
    what commits to it on record, 32 bytes.
    """

    id: str
    content: bytes
    key: CertificatePublicKeyTypes = field(compare=False)
    expiry: datetime
    digest: bytes

    @property
    def key_digest(self) -> bytes:
        """SHA-256 of its holder's public key in DER, the same for every credential of this key."""
        der = self.key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return hashlib.sha256(der).digest()


def credential_of(certificate: x509.Certificate) -> Credential:
    """Return a certificate as a credential."""
    return Credential(
        id=serial_of(certificate),
        content=certificate_to_pem(certificate),
        key=certificate.public_key(),
        expiry=certificate.not_valid_after_utc,
        digest=certificate.fingerprint(hashes.SHA256()),
    )


def serial_of(certificate: x509.Certificate) -> str:
    """Return a certificate's serial number as the store writes it."""
    return f"{certificate.serial_number:x}"
