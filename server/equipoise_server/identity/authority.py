"""The deployment's own certificate authority.

Trust: whoever has `ca/authority.key` can pose as the server. A certificate only proves a name. The registry, which
is read on every call, says what that name may do; a certificate that is not in the registry is refused.

Validity: the authority is valid for 3,650 days, the server's certificate for 825 days, an identity's certificate
for 397 days unless configured. No certificate outlasts the authority. Each begins five minutes early, to tolerate
clocks that differ a little.

An authority can be succeeded by another with a fresh key and the same name. The old key signs a *link*, a
certificate for the new key, so that whoever trusts only the old authority accepts what the new one signs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from equipoise.errors import InvalidArgument
from equipoise.profile.certificates import issued_by
from equipoise_server.identity.certificate_forms import (
    alternative_name,
    authority_certificate,
    builder,
    key_usage,
    last_moment,
    named,
)
from equipoise_server.identity.key_pairs import read_pair, replace_pair
from equipoise_server.identity.keyfiles import make_private_directory
from equipoise_server.identity.names import check_name, identity_uri

SERVER_DAYS = 825
IDENTITY_DAYS = 397
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
    """The certificate authority of one deployment. Issuing changes nothing but the bytes returned.

    `predecessor`: the authority's certificate before, as long as what it signed is honoured; `link`: what its key
    has signed for this key. Both are None unless the authority is being exchanged.
    """

    deployment: str
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    link: x509.Certificate | None = None
    predecessor: x509.Certificate | None = None

    @classmethod
    def create(cls, deployment: str, now: datetime) -> Authority:
        """Return a new authority with a fresh key, allowed to sign end certificates only."""
        check_name(deployment, "deployment")
        key = new_key()
        subject = named(f"Equipoise authority of {deployment}")
        return cls(deployment, authority_certificate(subject, key.public_key(), key, now, last_moment(now)), key)

    def succeeded(self, now: datetime) -> Authority:
        """Return the authority that comes after this one: a fresh key under the same name, and the link to it.

        The name stays the same because the old certificate allows no authority below itself (its path length is 0),
        but RFC 5280 does not count a certificate that has one name as subject and issuer.
        """
        key, subject = new_key(), self.certificate.subject
        end = min(last_moment(now), self.certificate.not_valid_after_utc)
        return replace(
            self,
            certificate=authority_certificate(subject, key.public_key(), key, now, last_moment(now)),
            key=key,
            link=authority_certificate(subject, key.public_key(), self.key, now, end),
            predecessor=self.certificate,
        )

    def without_predecessor(self) -> Authority:
        """Return this authority alone: what its predecessor signed is not honoured any more."""
        return replace(self, link=None, predecessor=None)

    @classmethod
    def load(cls, directory: Path, deployment: str) -> Authority:
        """Read what `save` wrote. Raises `InvalidArgument` naming the file that is missing, exposed or wrong."""
        path = directory / CERTIFICATE_FILE
        certificates, key = read_pair(path, directory / KEY_FILE, "is not the key of the authority's certificate")
        certificate, *before = certificates
        if not before:
            return cls(deployment, certificate, key)
        if len(before) != 2 or not _links(before[0], before[1], certificate):
            raise InvalidArgument(str(path), "does not hold the authority, its link and its predecessor")
        return cls(deployment, certificate, key, before[0], before[1])

    def save(self, directory: Path) -> None:
        """Write certificates and key into `directory` (0700), the key as 0600, over those that are there.

        After a crash `load` reads the authority that was there, or this one.
        """
        make_private_directory(directory)
        chain = [each for each in (self.certificate, self.link, self.predecessor) if each is not None]
        content = b"".join(map(certificate_to_pem, chain))
        replace_pair(directory / CERTIFICATE_FILE, content, directory / KEY_FILE, key_to_pem(self.key))

    @property
    def pem(self) -> bytes:
        """The authority's certificate in PEM: what clients trust."""
        return certificate_to_pem(self.certificate)

    @property
    def accepted_pem(self) -> bytes:
        """The certificates in PEM by whose keys a client's certificate may be signed."""
        return self.pem + (b"" if self.predecessor is None else certificate_to_pem(self.predecessor))

    @property
    def link_pem(self) -> bytes:
        """The link in PEM, which a server shows with its certificate; empty without a predecessor."""
        return b"" if self.link is None else certificate_to_pem(self.link)

    def issued(self, certificate: x509.Certificate) -> bool:
        """Return whether this authority's present key signed the certificate."""
        return issued_by(certificate, self.certificate)

    def issue_identity(
        self, name: str, public_key: ec.EllipticCurvePublicKey, now: datetime, days: float = IDENTITY_DAYS
    ) -> x509.Certificate:
        """Return a certificate for the client's side of TLS.

        Args:
            name: Whom it certifies.
            public_key: Of the holder.
            now: When it becomes valid.
            days: For how long it is valid; never longer than the authority's own.

        Raises:
            InvalidArgument: The name is none.
        """
        uri = x509.UniformResourceIdentifier(identity_uri(self.deployment, check_name(name)))
        unsigned = builder(named(name), self.certificate.subject, public_key, now, self._end(now, days))
        return self._sign(unsigned, [uri], ExtendedKeyUsageOID.CLIENT_AUTH, public_key)

    def reissue_identity(self, name: str, certificate: x509.Certificate, now: datetime) -> x509.Certificate:
        """Return a certificate for the same name and key, which ends when this one does."""
        uri = x509.UniformResourceIdentifier(identity_uri(self.deployment, check_name(name)))
        key, end = certificate.public_key(), certificate.not_valid_after_utc
        assert isinstance(key, ec.EllipticCurvePublicKey)  # no other key is ever certified
        unsigned = builder(
            named(name), self.certificate.subject, key, now, min(end, self.certificate.not_valid_after_utc)
        )
        return self._sign(unsigned, [uri], ExtendedKeyUsageOID.CLIENT_AUTH, key)

    def issue_server(
        self, hosts: Sequence[str], public_key: ec.EllipticCurvePublicKey, now: datetime, days: int = SERVER_DAYS
    ) -> x509.Certificate:
        """Return a certificate for the server's side of TLS.

        Args:
            hosts: Host names and IP addresses by which clients reach the server, at least one.
            public_key: Of the server.
            now: When it becomes valid.
            days: For how long it is valid; never longer than the authority's own.

        Raises:
            InvalidArgument: There is no host, or one is neither a name nor an address.
        """
        if not hosts:
            raise InvalidArgument("hosts", "needs at least one host name or address")
        alternatives = [alternative_name(host) for host in hosts]
        subject, end = named("equipoise-server"), self._end(now, days)
        unsigned = builder(subject, self.certificate.subject, public_key, now, end)
        return self._sign(unsigned, alternatives, ExtendedKeyUsageOID.SERVER_AUTH, public_key)

    def _end(self, now: datetime, days: float) -> datetime:
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
            .add_extension(key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(issuer_key, critical=False)
            .sign(self.key, hashes.SHA256())
        )


def server_names(certificate: x509.Certificate) -> list[str]:
    """Return the host names and addresses that a server's certificate is good for."""
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(name.value) for name in alternatives]


def _links(link: x509.Certificate, predecessor: x509.Certificate, certificate: x509.Certificate) -> bool:
    """Return whether the predecessor's key has signed a link for the key of an authority of the same name."""
    same = link.public_key() == certificate.public_key() and link.subject == certificate.subject
    return same and issued_by(link, predecessor)
