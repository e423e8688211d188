"""What the store says of who gets in is compared with the log, change by change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from harness.server_process import signing_request
from harness.stores import open_empty
from sqlalchemy import Executable

from equipoise.errors import DataLoss
from equipoise.model.identities import Role
from equipoise_server.identity.admission import HOLDER, Admission
from equipoise_server.identity.authority import Authority, new_key
from equipoise_server.identity.login_tokens import Account
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.identity import certificates, identities, logins
from equipoise_server.storage.tables.transparency import records
from equipoise_server.transparency.identity_check import check_identities
from equipoise_server.transparency.identity_records import recorded_login, recorded_registry
from equipoise_server.transparency.record_writer import check_records

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AUTHORITY = Authority.create("here", NOW)
ISSUER = "https://login.example"
OLGAS = Account(ISSUER, "olga-1")


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """Olga may log in and has; ann had a login once; bob has a certificate and no login."""
    opened = open_empty(store_url)
    registry = recorded_registry(Operations(opened, lambda: NOW, lambda: None))
    admission = Admission(registry, lambda: AUTHORITY, lambda *_: True, recorded_login, 397, 90, 3)
    admission.allow_login("olga", Role.OPERATOR, OLGAS, "1", HOLDER)
    admission.log_in(OLGAS, signing_request(new_key()), "token")
    admission.allow_login("ann", Role.ANALYST, Account(ISSUER, "ann-1"), "2", HOLDER)
    admission.revoke("ann", {Role.ANALYST}, "3", HOLDER)
    admission.admit("bob", Role.ANALYST, signing_request(new_key()), "4", HOLDER)
    yield opened
    opened.close()


def check(store: Store) -> int:
    with store.read() as connection:
        check_records(connection)
        return check_identities(connection)


def test_a_store_is_as_its_log_says(store: Store) -> None:
    assert check(store) == 2


HERS = logins.c.name == "olga"
OF_HER = certificates.c.name == "olga"


@pytest.mark.parametrize(
    ("altered", "problem"),
    [
        (logins.update().where(HERS).values(subject="mallory"), "logins: 'olga' may log in with the account "),
        (logins.update().where(HERS).values(issuer=f"{ISSUER}/"), "logins: 'olga' may log in with the account "),
        (logins.update().where(HERS).values(name="bob"), "logins: 'bob' may log in with the account "),
        (logins.delete().where(HERS), "logins: 'olga' may log in with no account in the store"),
        (
            logins.insert().values(name="ann", issuer=ISSUER, subject="ann-1"),
            "logins: 'ann' may log in with the account .* in the store, and with no account on record",
        ),
        (records.update().where(records.c.login_of == "ann").values(login_of=None), "a change of another's login"),
        (records.update().where(records.c.login_of == "ann").values(login_of="olga"), "another's login"),
        (certificates.update().where(OF_HER).values(revoked=1), "certificates: the one of 'olga' .* is revoked in"),
        (certificates.delete().where(OF_HER), "certificates: the one of 'olga' .* is not there in the store"),
        (certificates.update().where(OF_HER).values(key=bytes(32)), "'olga' is kept with the key or the end of"),
        (
            certificates.update().where(OF_HER).values(expires=1),
            "'olga' is kept with the key or the end of another",
        ),
        (
            certificates.update().where(OF_HER).values(login=False),
            "the one of 'olga' .* was not had in the same way",
        ),
        (certificates.update().values(login=True), "the one of 'bob' .* was not had in the same way"),
        (identities.update().values(role="auditor"), "identities: 'ann' is auditor in the store, and analyst on"),
    ],
)
def test_what_the_log_does_not_say_is_found(store: Store, altered: Executable, problem: str) -> None:
    with store.write() as connection:
        connection.execute(altered)
    with pytest.raises(DataLoss, match=problem):
        check(store)
