"""Logging in: an account stands for one identity until that is revoked, and a token gets one certificate."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from harness.server_process import signing_request
from harness.stores import open_empty
from sqlalchemy import Connection

from equipoise.errors import AlreadyExists, InvalidArgument, NotAuthenticated, NotFound
from equipoise.model.identities import Role
from equipoise.profile.certificates import read_certificate
from equipoise.records.identity_items import IdentityEvent, IdentityItem
from equipoise_server.identity.admission import HOLDER, Admission
from equipoise_server.identity.authority import Authority, new_key
from equipoise_server.identity.credential import credential_of
from equipoise_server.identity.login_tokens import Account
from equipoise_server.identity.registry import Registry
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.tables.identity import logins
from equipoise_server.transparency.identity_records import identity_changed, recorded_login

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AUTHORITY = Authority.create("here", NOW)
ANNS, BOBS = Account("https://login.example", "1"), Account("https://login.example", "2")
CHANGES: list[IdentityItem] = []


@pytest.fixture
def admission(store_url: str) -> Iterator[Admission]:
    CHANGES.clear()
    store = open_empty(store_url)

    def recorder(connection: Connection, change: IdentityItem, now: datetime) -> None:
        CHANGES.append(change)
        identity_changed(connection, change, now)

    registry = Registry(Operations(store, lambda: NOW, lambda: None), recorder)
    yield Admission(registry, lambda: AUTHORITY, lambda *_: True, recorded_login, 397, 90, 3)
    store.close()


def request() -> bytes:
    return signing_request(new_key())


def test_an_account_has_certificates_of_minutes_one_for_each_token(admission: Admission) -> None:
    admission.allow_login("ann", Role.ANALYST, ANNS, "1", "operator/olga")
    asked = request()
    name, pem = admission.log_in(ANNS, asked, "token")
    certificate = read_certificate(pem)
    assert name == "ann"
    assert certificate.not_valid_after_utc == NOW + timedelta(minutes=90)
    assert admission.registry.caller("ann", credential_of(certificate)).role is Role.ANALYST
    # An answer that was lost is given again, and a token that was stolen gets nothing.
    assert admission.log_in(ANNS, asked, "token") == (name, pem)
    with pytest.raises(NotAuthenticated, match=r"^the login was refused$"):
        admission.log_in(ANNS, request(), "token")
    _, second = admission.log_in(ANNS, request(), "another token")
    for each in (certificate, read_certificate(second)):
        assert admission.registry.caller("ann", credential_of(each)).name == "ann"
    told = [(each.event, each.name, each.by, each.login) for each in CHANGES]
    assert told == [
        (IdentityEvent.LOGIN, "ann", "operator/olga", ANNS.digest),
        (IdentityEvent.RENEWED, "ann", "login/ann", ANNS.digest),
        (IdentityEvent.RENEWED, "ann", "login/ann", ANNS.digest),
    ]


def test_an_unknown_account_gets_nothing(admission: Admission) -> None:
    admission.allow_login("ann", Role.ANALYST, ANNS, "1", HOLDER)
    for other in (BOBS, Account("https://login.example/tenant-2", "1")):
        with pytest.raises(NotAuthenticated, match=r"^the login was refused$"):
            admission.log_in(other, request(), "token")


def test_whoever_is_revoked_cannot_log_in_until_that_is_allowed_again(admission: Admission) -> None:
    admission.allow_login("ann", Role.ANALYST, ANNS, "1", HOLDER)
    asked = request()
    admission.log_in(ANNS, asked, "token")
    admission.revoke("ann", {Role.ANALYST}, "2", HOLDER)
    for tried in (asked, request()):
        with pytest.raises(NotAuthenticated):
            admission.log_in(ANNS, tried, "token")
    admission.allow_login("ann", Role.ANALYST, ANNS, "3", HOLDER)
    # The revoked key stays out.
    with pytest.raises(InvalidArgument, match="revoked"):
        admission.log_in(ANNS, asked, "token after")
    assert admission.log_in(ANNS, request(), "token at last")[0] == "ann"


def test_a_deleted_analyst_cannot_log_in_ever_again(admission: Admission) -> None:
    admission.allow_login("ann", Role.ANALYST, ANNS, "1", HOLDER)
    with admission.registry.operations.store.write() as connection:
        admission.registry.mark_deleted(connection, "ann", HOLDER, NOW)
    with pytest.raises(NotAuthenticated):
        admission.log_in(ANNS, request(), "token")
    with pytest.raises(NotFound):
        admission.allow_login("ann", Role.ANALYST, ANNS, "2", HOLDER)


def test_one_account_stands_for_one_identity_of_the_role_it_was_given(admission: Admission) -> None:
    admission.admit("bob", Role.OPERATOR, request(), "1", HOLDER)
    admission.allow_login("ann", Role.ANALYST, ANNS, "2", HOLDER)
    with pytest.raises(AlreadyExists):
        admission.allow_login("bob", Role.OPERATOR, ANNS, "3", HOLDER)
    with pytest.raises(AlreadyExists):
        admission.allow_login("ANN", Role.ANALYST, BOBS, "4", HOLDER)
    # An operator of the network cannot let an analyst's account become an operator.
    with pytest.raises(NotFound):
        admission.allow_login("bob", Role.ANALYST, BOBS, "5", "operator/olga")
    admission.allow_login("bob", Role.OPERATOR, BOBS, "6", HOLDER)
    assert admission.log_in(BOBS, request(), "token")[0] == "bob"
    # Another account takes the place of the one before.
    admission.allow_login("ann", Role.ANALYST, Account("https://login.example", "3"), "7", HOLDER)
    with pytest.raises(NotAuthenticated):
        admission.log_in(ANNS, request(), "token")


def test_an_account_that_is_taken_away_meanwhile_gets_nothing(
    admission: Admission, monkeypatch: pytest.MonkeyPatch
) -> None:
    admission.allow_login("ann", Role.ANALYST, ANNS, "1", HOLDER)
    issue = Authority.issue_identity

    def revoked_meanwhile(self: Authority, *arguments: object) -> object:
        admission.revoke("ann", {Role.ANALYST}, "2", HOLDER)
        return issue(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Authority, "issue_identity", revoked_meanwhile)
    with pytest.raises(NotAuthenticated):
        admission.log_in(ANNS, request(), "token")


def test_an_account_that_the_log_does_not_have_gets_nothing(admission: Admission) -> None:
    """Who can write the store enters an account of their own there: a new one, and one that was taken away."""
    admission.allow_login("olga", Role.OPERATOR, ANNS, "1", HOLDER)
    admission.allow_login("olga", Role.OPERATOR, BOBS, "2", HOLDER)
    store = admission.registry.operations.store
    for account in (Account(ANNS.issuer, "mallory"), ANNS):
        with store.write() as connection:
            connection.execute(logins.update().values(issuer=account.issuer, subject=account.subject))
        with pytest.raises(NotAuthenticated, match=r"^the login was refused$"):
            admission.log_in(account, request(), "token")
    with store.write() as connection:
        connection.execute(logins.update().values(issuer=BOBS.issuer, subject=BOBS.subject))
    assert admission.log_in(BOBS, request(), "token")[0] == "olga"
    admission.revoke("olga", {Role.OPERATOR}, "3", HOLDER)
    with store.write() as connection:
        connection.execute(logins.insert().values(name="olga", issuer=BOBS.issuer, subject=BOBS.subject))
    with pytest.raises(NotAuthenticated, match=r"^the login was refused$"):
        admission.log_in(BOBS, request(), "another token")
