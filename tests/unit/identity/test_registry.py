"""The registry: roles, certificates in force, idempotent admission, pages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from equipoise.errors import AlreadyExists, DataLoss, InvalidArgument, NotAuthenticated
from equipoise_server.identity.authority import Authority, certificate_to_pem, new_key
from equipoise_server.identity.names import Caller, Role
from equipoise_server.identity.registry import Registry
from equipoise_server.storage.requests import make_request
from equipoise_server.storage.store import open_store
from equipoise_server.storage.tables import certificates

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AUTHORITY = Authority.create("here", NOW)
KEY = new_key().public_key()


@pytest.fixture
def registry(store_url: str) -> Iterator[Registry]:
    store = open_store(store_url)
    yield Registry(store)
    store.close()


def test_who_holds_a_certificate(registry: Registry) -> None:
    issued = AUTHORITY.issue_identity("alice", KEY, NOW)
    assert registry.add("alice", Role.ANALYST, issued, NOW) == certificate_to_pem(issued)
    assert registry.caller("alice", issued.serial_number) == Caller("alice", Role.ANALYST)


def test_certificates_not_issued_here_or_to_others_or_revoked_are_not_in_force(registry: Registry) -> None:
    issued = AUTHORITY.issue_identity("alice", KEY, NOW)
    registry.add("alice", Role.ANALYST, issued, NOW)
    registry.add("bob", Role.OPERATOR, AUTHORITY.issue_identity("bob", KEY, NOW), NOW)
    for name, serial in (("alice", issued.serial_number + 1), ("bob", issued.serial_number), ("carol", 1)):
        with pytest.raises(NotAuthenticated):
            registry.caller(name, serial)
    with registry.store.write() as connection:
        connection.execute(certificates.update().values(revoked=1))
    with pytest.raises(NotAuthenticated):
        registry.caller("alice", issued.serial_number)


def test_the_same_request_again_gets_the_first_certificate(registry: Registry) -> None:
    first, second = (AUTHORITY.issue_identity("alice", KEY, NOW) for _ in range(2))
    request = make_request("operator/o", "r1", "add_analyst", "alice", b"csr")
    assert registry.add("alice", Role.ANALYST, first, NOW, request) == certificate_to_pem(first)
    assert registry.add("alice", Role.ANALYST, second, NOW, request) == certificate_to_pem(first)
    with pytest.raises(NotAuthenticated):
        registry.caller("alice", second.serial_number)


def test_a_request_id_with_other_content_and_a_taken_name_are_refused(registry: Registry) -> None:
    issued = AUTHORITY.issue_identity("alice", KEY, NOW)
    registry.add("alice", Role.ANALYST, issued, NOW, make_request("o", "r1", "add", "alice"))
    other = AUTHORITY.issue_identity("bob", KEY, NOW)
    with pytest.raises(AlreadyExists, match="request_id"):
        registry.add("bob", Role.ANALYST, other, NOW, make_request("o", "r1", "add", "bob"))
    again = AUTHORITY.issue_identity("alice", KEY, NOW)
    with pytest.raises(AlreadyExists, match="'alice'"):
        registry.add("alice", Role.OPERATOR, again, NOW, make_request("o", "r2", "add", "alice"))
    assert registry.list(Role.ANALYST, 0, "") == (["alice"], "")
    assert registry.list(Role.OPERATOR, 0, "") == ([], "")


def test_a_lost_certificate_is_noticed(registry: Registry) -> None:
    request = make_request("o", "r1", "add", "alice")
    issued = AUTHORITY.issue_identity("alice", KEY, NOW)
    registry.add("alice", Role.ANALYST, issued, NOW, request)
    with registry.store.write() as connection:
        connection.execute(certificates.delete())
    with pytest.raises(DataLoss):
        registry.add("alice", Role.ANALYST, issued, NOW, request)


def test_pages(registry: Registry) -> None:
    names = ["a", "b", "c", "d", "e"]
    for name in reversed(names):
        registry.add(name, Role.ANALYST, AUTHORITY.issue_identity(name, KEY, NOW), NOW)
    seen: list[str] = []
    token = ""
    for expected in (2, 2, 1):
        page, token = registry.list(Role.ANALYST, 2, token)
        assert len(page) == expected
        seen += page
    assert (seen, token) == (names, "")
    assert registry.list(Role.ANALYST, 5, "") == (names, "")
    with pytest.raises(InvalidArgument, match=r"^page_size"):
        registry.list(Role.ANALYST, 1001, "")
    with pytest.raises(InvalidArgument, match=r"^page_token"):
        registry.list(Role.ANALYST, 0, "no/name")
