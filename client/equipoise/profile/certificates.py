"""Certificates and signing requests in PEM, which anybody may have written.

`cryptography` reads some of their parts only when they are asked for, and says in several kinds of errors what it
cannot read. Here all that is used of them is read at once.
"""

from __future__ import annotations

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion)


def read_certificate(pem: bytes) -> x509.Certificate:
    """Returns a certificate whose key can be read. Raises `ValueError`."""
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        certificate.public_key()
    except _UNREADABLE:
        raise ValueError("is not a certificate in PEM") from None
    return certificate


def read_certificates(pem: bytes) -> list[x509.Certificate]:
    """Returns all certificates of a file, at least one, whose keys can be read. Raises `ValueError`."""
    try:
        certificates = x509.load_pem_x509_certificates(pem)
        for certificate in certificates:
            certificate.public_key()
    except _UNREADABLE:
        raise ValueError("is not a certificate in PEM") from None
    return certificates


def read_request(pem: bytes) -> x509.CertificateSigningRequest:
    """Returns a PKCS #10 request whose key can be read; its signature is not looked at. Raises `ValueError`."""
    try:
        request = x509.load_pem_x509_csr(pem)
        request.public_key()
    except _UNREADABLE:
        raise ValueError("is not a PKCS #10 certificate request in PEM") from None
    return request


def issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Returns whether the issuer's key signed the certificate, under the issuer's name."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (*_UNREADABLE, InvalidSignature):
        return False
    return True
