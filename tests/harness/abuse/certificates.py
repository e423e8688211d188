"""Certificates that no enrolment would give anyone, each for a fresh key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from harness.server_process import Credentials, key_to_pem

from equipoise_server.clock import system_clock
from equipoise_server.identity.authority import Authority, certificate_to_pem

DAY = timedelta(days=1)
CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH


@dataclass(frozen=True)
class Signer:
    """Who signs: a name and a key. An authority's certificate is shown along with what it signed, if given."""

    name: x509.Name
    key: ec.EllipticCurvePrivateKey
    shown: bytes = b""

    @classmethod
    def of(cls, authority: Authority) -> Signer:
        """The authority itself."""
        return cls(authority.certificate.subject, authority.key)


def forged(
    authority: Authority,
    *names: x509.GeneralName,
    signer: Signer | None = None,
    usages: Sequence[x509.ObjectIdentifier] = (CLIENT,),
    common_name: str = "operator",
    begins: timedelta = -2 * DAY,
    ends: timedelta = DAY,
) -> Credentials:
    """A certificate with these alternative names and usages; without a signer it signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
    signer = signer or Signer(subject, key)
    now = system_clock()
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer.name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(list(usages)), critical=False)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(names)), critical=False)
    certificate = certificate_to_pem(builder.sign(signer.key, hashes.SHA256()))
    return Credentials(authority.pem, certificate + signer.shown, key_to_pem(key))


def uri(text: str) -> x509.GeneralName:
    """A URI as an alternative name."""
    return x509.UniformResourceIdentifier(text)
