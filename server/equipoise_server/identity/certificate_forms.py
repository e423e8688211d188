"""The forms of the authority's certificates: what all have, and what each kind says it may be used for."""

from __future__ import annotations

import ipaddress
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from equipoise.errors import InvalidArgument

AUTHORITY_DAYS = 3650
CLOCK_SKEW = timedelta(minutes=5)


def last_moment(now: datetime) -> datetime:
    """Return the last moment of an authority that is made now."""
    return now + timedelta(days=AUTHORITY_DAYS)


def authority_certificate(
    subject: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
    now: datetime,
    end: datetime,
) -> x509.Certificate:
    """Return a certificate under an authority's own name, which may sign end certificates only."""
    signed_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return (
        builder(subject, subject, public_key, now, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(signed_by, critical=False)
        .sign(signer, hashes.SHA256())
    )


def builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    """Return what all certificates have: names, key, a random serial number, and the time of their validity."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(end)
    )


def named(common_name: str) -> x509.Name:
    """Return a subject with this common name, which nobody reads."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])


def alternative_name(host: str) -> x509.GeneralName:
    """Return a server's address or host name. Raises `InvalidArgument`."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise InvalidArgument("hosts", f"{host!r} is neither an IP address nor an ASCII host name") from None


def key_usage(signs_certificates: bool) -> x509.KeyUsage:
    """Return what an authority's key may be used for, or that of an end certificate."""
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
