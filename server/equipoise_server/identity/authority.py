"""The deployment's own certificate authority.

Trust: whoever has `ca/authority.key` can pose as the server. A certificate only proves a name. The registry, which
is read on every call, says what that name may do; a certificate that is not in the registry is refused.

Validity: the authority is valid for 3,650 days, the server's certificate for 825 days, an identity's certificate
for 397 days unless configured. No certificate outlasts the authority. Each begins five minutes early, to tolerate
clocks that differ a little.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from equipoise.errors import InvalidArgument
from equipoise.profile.certificates import read_certificate
from equipoise_server.identity.keyfiles import make_private_directory, read_private, write_private
from equipoise_server.identity.names import check_name, identity_uri

AUTHORITY_DAYS = 3650
SERVER_DAYS = 825
IDENTITY_DAYS = 397
CLOCK_SKEW = timedelta(minutes=5)
CERTIFICATE_FILE = "authority.pem"
KEY_FILE = "authority.key"


def new_key() -> ec.EllipticCurvePrivateKey:
    """Return a fresh key on P-256."""
    return ec.generate_private_key(ec.SECP256R1())


def key_to_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the key as unencrypted PKCS #8 PEM, to be written with `keyfiles.write_private`."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def certificate_to_pem(certificate: x509.Certificate) -> bytes:
    """Return the certificate as PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


@dataclass(frozen=True)
class Authority:
    """The certificate authority of one deployment. Issuing changes nothing but the bytes returned."""

    deployment: str
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, deployment: str, now: datetime) -> Authority:
        """Return a new authority with a fresh key, allowed to sign end certificates only."""
        check_name(deployment, "deployment")
        key = new_key()
        subject = _subject(f"Equipoise authority of {deployment}")
        certificate = (
            _builder(subject, subject, key.public_key(), now, now + timedelta(days=AUTHORITY_DAYS))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(deployment, certificate, key)

    @classmethod
    def load(cls, directory: Path, deployment: str) -> Authority:
        """Read what `save` wrote. Raises `InvalidArgument` naming the file that is missing, exposed or wrong."""
        certificate = load_certificate(directory / CERTIFICATE_FILE)
        key = load_key(directory / KEY_FILE)
        if key.public_key() != certificate.public_key():
            raise InvalidArgument(str(directory / KEY_FILE), "is not the key of the authority's certificate")
        return cls(deployment, certificate, key)

    def save(self, directory: Path) -> None:
        """Write certificate and key into `directory` (0700), the key as 0600; never over an existing key."""
        make_private_directory(directory)
        write_private(directory / KEY_FILE, key_to_pem(self.key))
        (directory / CERTIFICATE_FILE).write_bytes(self.pem)

    @property
    def pem(self) -> bytes:
        """The authority's certificate in PEM: what clients and the server trust."""
        return certificate_to_pem(self.certificate)

    def issue_identity(
        self, name: str, public_key: ec.EllipticCurvePublicKey, now: datetime, days: int = IDENTITY_DAYS
    ) -> x509.Certificate:
        """Return a certificate by which the holder of `public_key` is `name`, for the client's side of TLS only."""
        uri = x509.UniformResourceIdentifier(identity_uri(self.deployment, check_name(name)))
        unsigned = _builder(_subject(name), self.certificate.subject, public_key, now, self._end(now, days))
        return self._sign(unsigned, [uri], ExtendedKeyUsageOID.CLIENT_AUTH, public_key)

    def issue_server(
        self, hosts: Sequence[str], public_key: ec.EllipticCurvePublicKey, now: datetime, days: int = SERVER_DAYS
    ) -> x509.Certificate:
        """Return a certificate for the server's host names and IP addresses, for the server's side of TLS only."""
        if not hosts:
            raise InvalidArgument("hosts", "needs at least one host name or address")
        alternatives = [_host(host) for host in hosts]
        subject, end = _subject("equipoise-server"), self._end(now, days)
        unsigned = _builder(subject, self.certificate.subject, public_key, now, end)
        return self._sign(unsigned, alternatives, ExtendedKeyUsageOID.SERVER_AUTH, public_key)

    def _end(self, now: datetime, days: int) -> datetime:
        # Nobody accepts a certificate after the end of the authority that signed it.
        last = self.certificate.not_valid_after_utc
        if last <= now:
            raise InvalidArgument("authority", f"expired on {last:%Y-%m-%d}, and can no longer issue certificates")
        return min(now + timedelta(days=days), last)

    def _sign(
        self,
        unsigned: x509.CertificateBuilder,
        alternatives: Sequence[x509.GeneralName],
        usage: x509.ObjectIdentifier,
        public_key: ec.EllipticCurvePublicKey,
    ) -> x509.Certificate:
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        return (
            unsigned.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(issuer_key, critical=False)
            .sign(self.key, hashes.SHA256())
        )


def load_certificate(path: Path) -> x509.Certificate:
    """Return the certificate in a PEM file, or `InvalidArgument` naming the file."""
    try:
        return read_certificate(path.read_bytes())
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None
    except ValueError:
        raise InvalidArgument(str(path), "holds no certificate in PEM") from None


def server_names(certificate: x509.Certificate) -> list[str]:
    """Return the host names and addresses that a server's certificate is good for."""
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(name.value) for name in alternatives]


def load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the private key in a PEM file that only its owner may open, or `InvalidArgument` naming the file."""
    try:
        key = serialization.load_pem_private_key(read_private(path), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InvalidArgument(str(path), "holds no unencrypted elliptic-curve key in PEM")
    return key


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(end)
    )


def _subject(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise InvalidArgument("hosts", f"{host!r} is neither an IP address nor an ASCII host name") from None


def _key_usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
