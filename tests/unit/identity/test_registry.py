"""The registry: roles, certificates in force, idempotent admission, pages."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from harness.stores import open_empty, statements

from equipoise.errors import AlreadyExists, DataLoss, InvalidArgument, NotAuthenticated, NotFound
from equipoise.model.identities import Caller, Identity, Role
from equipoise.records.identity_items import IdentityItem
from equipoise_server.identity.authority import Authority, certificate_to_pem, new_key
from equipoise_server.identity.credential import credential_of, serial_of
from equipoise_server.identity.registry import SERIALS_AT_ONCE, Registry
from equipoise_server.storage.idempotency import Request, make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.tables.identity import certificates

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AUTHORITY = Authority.create("here", NOW)
KEY = new_key().public_key()
ANALYSTS = {Role.ANALYST}


def fresh() -> Request:
    """A request that was never made before."""
    return make_request("o", secrets.token_hex(8), "add_identity")


@pytest.fixture
def registry(store_url: str) -> Iterator[Registry]:
    store = open_empty(store_url)
    changes: list[IdentityItem] = []
    yield Registry(Operations(store, lambda: NOW, lambda: None), lambda _, change, __: changes.append(change))
    store.close()


def test_who_holds_a_certificate(registry: Registry) -> None:
    issued = AUTHORITY.issue_identity("alice", KEY, NOW)
    assert registry.add("alice", Role.ANALYST, credential_of(issued), fresh()) == certificate_to_pem(issued)
    assert registry.caller("alice", credential_of(issued)) == Caller("alice", Role.ANALYST)


def test_certificates_not_issued_here_or_to_others_are_not_in_force(registry: Registry) -> None:
    issued, bobs = (AUTHORITY.issue_identity(name, KEY, NOW) for name in ("alice", "bob"))
    registry.add("alice", Role.ANALYST, credential_of(issued), fresh())
    registry.add("bob", Role.OPERATOR, credential_of(bobs), fresh())
    unrecorded = AUTHORITY.issue_identity("alice", KEY, NOW)
    for name, certificate in (("alice", unrecorded), ("bob", issued), ("carol", issued)):
        with pytest.raises(NotAuthenticated):
            registry.caller(name, credential_of(certificate))


def test_a_certificate_that_only_has_the_serial_number_of_one_in_force_lets_nobody_in(registry: Registry) -> None:
    """Also who has stolen the authority's key is nobody without the registry."""
    issued = AUTHORITY.issue_identity("alice", KEY, NOW)
    registry.add("alice", Role.ANALYST, credential_of(issued), fresh())
    key = new_key()
    forged = (
        x509.CertificateBuilder()
        .subject_name(issued.subject)
        .issuer_name(issued.issuer)
        .public_key(key.public_key())
        .serial_number(issued.serial_number)
        .not_valid_before(NOW)
        .not_valid_after(issued.not_valid_after_utc)
    )
    for extension in issued.extensions:
        forged = forged.add_extension(extension.value, extension.critical)
    with pytest.raises(NotAuthenticated):
        registry.caller("alice", credential_of(forged.sign(AUTHORITY.key, hashes.SHA256())))


def test_a_renewed_identity_has_both_certificates_until_they_are_revoked(registry: Registry) -> None:
    old, new = (AUTHORITY.issue_identity("alice", KEY, NOW, days) for days in (10, 20))
    registry.add("alice", Role.ANALYST, credential_of(old), fresh())
    renewal = make_request("o", "r1", "renew_identity", "alice")
    assert registry.renew("alice", ANALYSTS, credential_of(new), renewal) == certificate_to_pem(new)
    again = AUTHORITY.issue_identity("alice", KEY, NOW)
    assert registry.renew("alice", ANALYSTS, credential_of(again), renewal) == certificate_to_pem(new)
    for certificate in (old, new):
        assert registry.caller("alice", credential_of(certificate)).name == "alice"
    assert registry.in_force({serial_of(each) for each in (old, new, again)}) == {serial_of(old), serial_of(new)}
    assert registry.list(ANALYSTS)[0] == [Identity("alice", Role.ANALYST, NOW, NOW + timedelta(days=20))]
    revocation = make_request("o", "r2", "revoke_identity", "alice")
    registry.revoke("alice", ANALYSTS, revocation)
    for certificate in (old, new):
        with pytest.raises(NotAuthenticated, match="not, or no longer, in force"):
            registry.caller("alice", credential_of(certificate))
    assert registry.in_force({serial_of(old), serial_of(new)}) == set()
    assert registry.list(ANALYSTS)[0] == [Identity("alice", Role.ANALYST, NOW, None)]


def test_after_a_revocation_only_a_new_key_lets_in_again(registry: Registry) -> None:
    registry.add("alice", Role.ANALYST, credential_of(AUTHORITY.issue_identity("alice", KEY, NOW)), fresh())
    revocation = make_request("o", "r1", "revoke_identity", "alice")
    registry.revoke("alice", ANALYSTS, revocation)
    same = AUTHORITY.issue_identity("alice", KEY, NOW)
    with pytest.raises(InvalidArgument, match=r"^signing_request: its key belongs to a revoked certificate"):
        registry.renew("alice", ANALYSTS, credential_of(same), make_request("o", "r2", "renew_identity", "alice"))
    other = AUTHORITY.issue_identity("alice", new_key().public_key(), NOW)
    registry.renew("alice", ANALYSTS, credential_of(other), make_request("o", "r3", "renew_identity", "alice"))
    # The request that revoked, sent again, has been carried out already.
    registry.revoke("alice", ANALYSTS, revocation)
    assert registry.caller("alice", credential_of(other)) == Caller("alice", Role.ANALYST)


def test_a_request_whose_certificate_was_revoked_is_no_success_when_it_is_sent_again(registry: Registry) -> None:
    issued, renewed = (AUTHORITY.issue_identity("alice", new_key().public_key(), NOW) for _ in range(2))
    admission, renewal = (
        make_request("o", method, method, "alice") for method in ("add_identity", "renew_identity")
    )
    registry.add("alice", Role.ANALYST, credential_of(issued), admission)
    registry.renew("alice", ANALYSTS, credential_of(renewed), renewal)
    registry.revoke("alice", ANALYSTS, make_request("o", "revoke", "revoke_identity", "alice"))
    problem = r"^signing_request: its key belongs to a revoked certificate"
    with pytest.raises(InvalidArgument, match=problem):
        registry.add("alice", Role.ANALYST, credential_of(issued), admission)
    with pytest.raises(InvalidArgument, match=problem):
        registry.renew("alice", ANALYSTS, credential_of(renewed), renewal)


@pytest.mark.parametrize("name", ["nobody", "gone", "bob"])
def test_who_is_not_there_was_deleted_or_is_no_analyst_is_not_found_in_the_same_words(
    registry: Registry, name: str
) -> None:
    for each, role in (("gone", Role.ANALYST), ("bob", Role.OPERATOR)):
        registry.add(each, role, credential_of(AUTHORITY.issue_identity(each, KEY, NOW)), fresh())
    with registry.operations.store.write() as connection:
        registry.mark_deleted(connection, "gone", "o", NOW)
    issued = AUTHORITY.issue_identity(name, KEY, NOW)
    with pytest.raises(NotFound, match=r"^there is no such analyst$"):
        registry.renew(name, ANALYSTS, credential_of(issued), make_request("o", "1", "renew_identity", name))
    with pytest.raises(NotFound, match=r"^there is no such analyst$"):
        registry.revoke(name, ANALYSTS, make_request("o", "2", "revoke_identity", name))


def test_a_deleted_name_is_never_given_again(registry: Registry) -> None:
    issued = AUTHORITY.issue_identity("alice", KEY, NOW)
    registry.add("alice", Role.ANALYST, credential_of(issued), fresh())
    with registry.operations.store.write() as connection:
        registry.mark_deleted(connection, "alice", "o", NOW)
    with pytest.raises(NotAuthenticated):
        registry.caller("alice", credential_of(issued))
    assert registry.list(ANALYSTS) == ([], "")
    with pytest.raises(AlreadyExists, match="'alice' was deleted; its name stays taken"):
        registry.add("alice", Role.ANALYST, credential_of(AUTHORITY.issue_identity("alice", KEY, NOW)), fresh())


def test_a_name_that_differs_in_case_only_is_taken(registry: Registry) -> None:
    """Also a deleted analyst's: people and case-insensitive file systems would take one for the other."""
    issued = AUTHORITY.issue_identity("Alice", KEY, NOW)
    registry.add("Alice", Role.ANALYST, credential_of(issued), fresh())
    with pytest.raises(AlreadyExists, match="'Alice' is already registered"):
        registry.add("aLICE", Role.ANALYST, credential_of(AUTHORITY.issue_identity("aLICE", KEY, NOW)), fresh())
    with registry.operations.store.write() as connection:
        registry.mark_deleted(connection, "Alice", "o", NOW)
    with pytest.raises(AlreadyExists, match="'Alice' was deleted; its name stays taken"):
        registry.add("alice", Role.ANALYST, credential_of(AUTHORITY.issue_identity("alice", KEY, NOW)), fresh())


def test_the_same_request_again_gets_the_first_certificate(registry: Registry) -> None:
    first, second = (AUTHORITY.issue_identity("alice", KEY, NOW) for _ in range(2))
    request = make_request("operator/o", "r1", "add_identity", "alice", b"csr")
    assert registry.add("alice", Role.ANALYST, credential_of(first), request) == certificate_to_pem(first)
    assert registry.add("alice", Role.ANALYST, credential_of(second), request) == certificate_to_pem(first)
    with pytest.raises(NotAuthenticated):
        registry.caller("alice", credential_of(second))


def test_a_request_id_with_other_content_and_a_taken_name_are_refused(registry: Registry) -> None:
    issued = AUTHORITY.issue_identity("alice", KEY, NOW)
    registry.add("alice", Role.ANALYST, credential_of(issued), make_request("o", "r1", "add_identity", "alice"))
    other = AUTHORITY.issue_identity("bob", KEY, NOW)
    with pytest.raises(AlreadyExists, match="request_id"):
        registry.add("bob", Role.ANALYST, credential_of(other), make_request("o", "r1", "add_identity", "bob"))
    again = AUTHORITY.issue_identity("alice", KEY, NOW)
    with pytest.raises(AlreadyExists, match="'alice'"):
        registry.add("alice", Role.OPERATOR, credential_of(again), make_request("o", "r2", "add_identity", "alice"))
    assert [each.name for each in registry.list(ANALYSTS)[0]] == ["alice"]
    assert registry.list({Role.OPERATOR}, 0, "") == ([], "")


def test_a_lost_certificate_is_noticed(registry: Registry) -> None:
    request = make_request("o", "r1", "add_identity", "alice")
    issued = AUTHORITY.issue_identity("alice", KEY, NOW)
    registry.add("alice", Role.ANALYST, credential_of(issued), request)
    with registry.operations.store.write() as connection:
        connection.execute(certificates.delete())
    with pytest.raises(DataLoss):
        registry.add("alice", Role.ANALYST, credential_of(issued), request)


def test_pages(registry: Registry) -> None:
    names = ["a", "b", "c", "d", "e"]
    for name in reversed(names):
        registry.add(name, Role.ANALYST, credential_of(AUTHORITY.issue_identity(name, KEY, NOW)), fresh())
    seen: list[str] = []
    token = ""
    for expected in (2, 2, 1):
        page, token = registry.list(ANALYSTS, 2, token)
        assert len(page) == expected
        seen += [each.name for each in page]
    assert (seen, token) == (names, "")
    page, token = registry.list(ANALYSTS, 5, "")
    assert ([each.name for each in page], token) == (names, "")
    with pytest.raises(InvalidArgument, match=r"^page_size"):
        registry.list(ANALYSTS, 1001, "")
    with pytest.raises(InvalidArgument, match=r"^page_token"):
        registry.list(ANALYSTS, 0, "no/name")


def test_any_number_of_certificates_is_asked_for_in_the_same_statements(registry: Registry) -> None:
    told, serials = [], set()
    for name in ("a", "b", "c"):
        issued = AUTHORITY.issue_identity(name, KEY, NOW)
        registry.add(name, Role.ANALYST, credential_of(issued), fresh())
        serials.add(serial_of(issued))
        with statements() as carried_out:
            assert registry.in_force(serials) == serials
            registry.list(ANALYSTS)
        told.append(carried_out)
    assert told[0] == told[1] == told[2] != set()
    others = {f"{number}" for number in range(2 * SERIALS_AT_ONCE)}
    assert registry.in_force(serials | others) == serials
