"""Who gets in, and what they may call: certificates, roles, metadata that claims to be somebody."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID
from harness.abuse.certificates import CLIENT, DAY, Signer, forged, uri
from harness.abuse.place import ANALYST, OPERATOR, Place, attempt, outcome, refusal
from harness.abuse.raw_http2 import Header, call_headers, endings, message
from harness.server_process import Credentials, Refusal

from equipoise.model.identities import Role
from equipoise.v1 import analyst_pb2, types_pb2
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.clock import system_clock
from equipoise_server.identity.authority import Authority
from equipoise_server.identity.names import identity_uri
from equipoise_server.identity.policy import POLICY

WHO = f"{ANALYST}/GetIdentity"
NO_CONNECTION = ("UNAVAILABLE", "")  # TLS refuses before there is a call that could be given a status of ours
NOBODY = ("UNAUTHENTICATED", "IDENTITY")


@pytest.fixture(scope="module")
def authority(here: Place) -> Authority:
    return open_deployment(here.server.state, system_clock()).authority


def own(authority: Authority, name: str = "operator") -> x509.GeneralName:
    return uri(identity_uri(authority.deployment, name))


def by(authority: Authority, *names: x509.GeneralName, usage: x509.ObjectIdentifier | None = CLIENT) -> Credentials:
    """With the true authority's signature."""
    return forged(authority, *names, signer=Signer.of(authority), usages=(usage,) if usage else ())


def of_another_authority(authority: Authority) -> Credentials:
    stranger = Authority.create(authority.deployment, system_clock())
    return forged(authority, own(authority), signer=Signer.of(stranger))


def timed(authority: Authority, begins: int, ends: int) -> Credentials:
    return forged(authority, own(authority), signer=Signer.of(authority), begins=begins * DAY, ends=ends * DAY)


def signed_by_an_analyst(here: Place, authority: Authority) -> Credentials:
    """An analyst's certificate is no authority's, however well it is signed itself."""
    assert here.mal.certificate is not None
    assert here.mal.key is not None
    issuer = x509.load_pem_x509_certificate(here.mal.certificate)
    key = load_pem_private_key(here.mal.key, None)
    signer = Signer(issuer.subject, key, here.mal.certificate)  # type: ignore[arg-type]
    return forged(authority, own(authority), signer=signer)


CERTIFICATES: dict[str, tuple[Callable[[Place, Authority], Credentials], tuple[str, str]]] = {
    "none": (lambda _, ca: Credentials(ca.pem), NO_CONNECTION),
    "self-signed": (lambda _, ca: forged(ca, own(ca)), NO_CONNECTION),
    "another authority's of the same name": (lambda _, ca: of_another_authority(ca), NO_CONNECTION),
    "signed by an analyst": (signed_by_an_analyst, NO_CONNECTION),
    "expired": (lambda _, ca: timed(ca, -2, -1), NO_CONNECTION),
    "not valid yet": (lambda _, ca: timed(ca, 1, 2), NO_CONNECTION),
    "a server's": (lambda _, ca: by(ca, own(ca), usage=ExtendedKeyUsageOID.SERVER_AUTH), NO_CONNECTION),
    "for signing mail": (lambda _, ca: by(ca, own(ca), usage=ExtendedKeyUsageOID.EMAIL_PROTECTION), NO_CONNECTION),
    "without usages": (lambda _, ca: by(ca, own(ca), usage=None), NOBODY),
    "common name only": (lambda _, ca: by(ca), NOBODY),
    "two names": (lambda _, ca: by(ca, own(ca, "mal"), own(ca)), NOBODY),
    "one name twice": (lambda _, ca: by(ca, own(ca, "mal"), own(ca, "mal")), NOBODY),
    "a name and a host": (lambda _, ca: by(ca, own(ca), x509.DNSName("operator")), NOBODY),
    "a name and an address": (lambda _, ca: by(ca, own(ca), x509.RFC822Name("operator@example.org")), NOBODY),
    "a host only": (lambda _, ca: by(ca, x509.DNSName("operator")), NOBODY),
    "another deployment's": (lambda _, ca: by(ca, uri("equipoise://elsewhere/operator")), NOBODY),
    "another scheme": (lambda _, ca: by(ca, uri(f"https://{ca.deployment}/operator")), NOBODY),
    "a path": (lambda _, ca: by(ca, own(ca, "mal/../operator")), NOBODY),
    "an escape": (lambda _, ca: by(ca, own(ca, "%6fperator")), NOBODY),
    "another case": (lambda _, ca: by(ca, own(ca, "Operator")), NOBODY),
    "an empty name": (lambda _, ca: by(ca, own(ca, "")), NOBODY),
    "a long name": (lambda _, ca: by(ca, own(ca, "a" * 64)), NOBODY),
    "a query": (lambda _, ca: by(ca, own(ca, "operator?role=operator")), NOBODY),
    "SQL": (lambda _, ca: by(ca, own(ca, "'or'1'='1")), NOBODY),
    "not registered": (lambda _, ca: by(ca, own(ca, "nobody")), NOBODY),
    "the operator's name, never issued": (lambda _, ca: by(ca, own(ca)), NOBODY),
    "the analyst's name, never issued": (lambda _, ca: by(ca, own(ca, "mal")), NOBODY),
}


@pytest.mark.parametrize("kind", CERTIFICATES)
def test_certificates_that_let_nobody_in(here: Place, authority: Authority, kind: str) -> None:
    make, expected = CERTIFICATES[kind]
    with here.channel(make(here, authority)) as channel:
        refused = refusal(channel, WHO, [b""])
    assert (refused.status, refused.reason) == expected, refused


CONTENTS = {
    "nothing": b"",
    "garbage": b"\xff" * 50,
    "a field of every kind": b"\x08\x01\x12\x01a\x19" + bytes(8) + b"\x25" + bytes(4),
    "much": b"\x0a\xff\xff\x03" + b"a" * 65_535,
}


@pytest.mark.parametrize("role", list(Role))
def test_no_role_reaches_the_methods_of_another(here: Place, role: Role) -> None:
    caller = {Role.ANALYST: here.mal, Role.OPERATOR: here.operator, Role.AUDITOR: here.auditor}[role]
    crossed = [method for method, row in POLICY.items() if role not in row.roles]
    assert crossed
    with here.channel(caller) as channel:
        for method in crossed:
            short = method.rpartition("/")[2]
            # The same words whatever was asked, so that nothing was looked at before the role.
            expected = Refusal("PERMISSION_DENIED", "ROLE", f"the role {role} may not call {short}")
            for name, content in CONTENTS.items():
                assert attempt(channel, method, [content]) == expected, (method, name)
            assert attempt(channel, method, [b"", b"\xff"]) == expected, method


CLAIMS: dict[str, tuple[tuple[str, str | bytes], ...]] = {
    "a proxy's certificate": (("x-forwarded-client-cert", "URI=equipoise://x/operator;Subject=CN=operator"),),
    "a proxy's verdict": (("x-ssl-client-verify", "SUCCESS"), ("x-ssl-client-s-dn", "CN=operator")),
    "an address": (("x-forwarded-for", "127.0.0.1"), ("x-real-ip", "127.0.0.1"), ("forwarded", "for=127.0.0.1")),
    "a user": (("x-remote-user", "operator"), ("x-forwarded-user", "operator"), ("from", "operator")),
    "a token": (("authorization", "Bearer operator"), ("cookie", "session=operator")),
    "our own words": (
        ("equipoise-reason", "ROLE"),
        ("x-equipoise-name", "operator"),
        ("x-equipoise-role", "operator"),
    ),
    "a certificate": (("x509_pem_cert", "operator"), ("x509-pem-cert-bin", b"-----BEGIN CERTIFICATE-----")),
    "binary garbage": (
        ("garbage-bin", os.urandom(500)),
        ("name-bin", b"\0\xff"),
        ("grpc-trace-bin", b"\xff" * 9),
    ),
    "the same many times": (("x-remote-user", "operator"),) * 50,
    "much": (("x-large", "operator" * 1500),),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_metadata_makes_nobody_of_anyone(here: Place, claim: str) -> None:
    metadata = CLAIMS[claim]
    with here.channel(here.mal) as channel:
        (raw,) = outcome(channel, WHO, [b""], metadata=metadata)
        assert analyst_pb2.GetIdentityResponse.FromString(raw) == analyst_pb2.GetIdentityResponse(
            name="mal", role=types_pb2.ROLE_ANALYST
        )
        refused = refusal(channel, f"{OPERATOR}/ListRounds", [b""], metadata=metadata)
        assert (refused.status, refused.reason) == ("PERMISSION_DENIED", "ROLE")


@pytest.mark.parametrize(
    "metadata",
    [
        (("x-large", "a" * 20_000),),
        (("x-large", "a" * 500_000),),
        (("x-large-bin", os.urandom(20_000)),),
        tuple((f"x-{number}", "a") for number in range(2000)),
    ],
    ids=["long", "very long", "binary", "many"],
)
def test_huge_metadata_is_refused_by_its_size(here: Place, metadata: tuple[tuple[str, str | bytes], ...]) -> None:
    with here.channel(here.mal) as channel:
        # gRPC itself refuses these, which knows no reasons of ours.
        refused = refusal(channel, WHO, [b""], metadata=metadata)
        assert (refused.status, refused.reason) == ("RESOURCE_EXHAUSTED", "")
        assert outcome(channel, WHO, [b""])


def path(method: str) -> Header:
    return (b":path", method.encode())


@pytest.mark.parametrize(
    "twist",
    [
        lambda method: [*call_headers(WHO), path(method)],
        lambda method: [path(WHO), *call_headers(method)],
        lambda method: [*call_headers(method), path(WHO)],
        lambda method: [*call_headers(method), (b":authority", b"operator")],
        lambda method: call_headers("/" + method),
        lambda method: call_headers(method + "/"),
        lambda method: call_headers(method.replace("/equipoise", "/x/../equipoise")),
        lambda method: call_headers(method.replace("ListRounds", "listrounds")),
        lambda method: call_headers(method.replace("L", "%4c")),
        lambda method: call_headers(method + "\0"),
        lambda method: call_headers(method + "?"),
    ],
)
def test_no_way_of_writing_a_method_leads_around_its_row(here: Place, twist: Callable[[str], list[Header]]) -> None:
    (ended,) = endings(here.server.port, here.mal, [(twist(f"{OPERATOR}/ListRounds"), message(b""))])
    assert here.shared.encode() not in ended.received
    assert ended.status in (b"7", b"12", b"13", b"") or (ended.status == b"0" and b"mal" in ended.received)
