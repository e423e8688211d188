"""Names, and where in a certificate they are looked for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from equipoise.errors import InvalidArgument, NotAuthenticated
from equipoise_server.identity.names import certified_name, check_name

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWN = x509.UniformResourceIdentifier("equipoise://here/alice")


def certificate(alternatives: Sequence[x509.GeneralName] | None, common_name: str = "mallory") -> x509.Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(NOW)
        .not_valid_after(NOW + timedelta(days=1))
    )
    if alternatives is not None:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(key, hashes.SHA256())


@pytest.mark.parametrize("name", ["a", "AA", "delta-air", "x.y_z", "9", "a" * 63])
def test_names_that_may_be(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "a/b", "a b", "ä", "a\n", "..", "a" * 64, "a\x00"])
def test_names_that_may_not_be(name: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^analyst: "):
        check_name(name, "analyst")


def test_the_name_is_the_uri_and_not_the_subject() -> None:
    assert certified_name(certificate([OWN]), "here") == "alice"


@pytest.mark.parametrize(
    "alternatives",
    [
        None,
        [],
        [OWN, OWN],
        [OWN, x509.UniformResourceIdentifier("equipoise://here/bob")],
        [OWN, x509.DNSName("alice")],
        [x509.DNSName("alice")],
        [x509.UniformResourceIdentifier("equipoise://elsewhere/alice")],
        [x509.UniformResourceIdentifier("equipoise://here/")],
        [x509.UniformResourceIdentifier("equipoise://here/alice/bob")],
        [x509.UniformResourceIdentifier("equipoise://here//alice")],
        [x509.UniformResourceIdentifier("https://here/alice")],
        [x509.UniformResourceIdentifier("EQUIPOISE://here/alice")],
    ],
)
def test_anything_but_one_own_uri_is_no_identity(alternatives: Sequence[x509.GeneralName] | None) -> None:
    with pytest.raises(NotAuthenticated):
        certified_name(certificate(alternatives, common_name="alice"), "here")
