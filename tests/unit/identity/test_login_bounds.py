"""What one account may take by logging in: so many logins a day, and nothing that stays for ever."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from harness.server_process import signing_request
from harness.stores import open_empty
from sqlalchemy import func, select, update

from equipoise.errors import InvalidArgument, TooFast
from equipoise.model.identities import Role
from equipoise_server.identity.admission import HOLDER, Admission
from equipoise_server.identity.authority import Authority, new_key
from equipoise_server.identity.login_tokens import Account
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.identity import certificates
from equipoise_server.transparency.identity_check import check_identities
from equipoise_server.transparency.identity_records import recorded_login, recorded_registry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AUTHORITY = Authority.create("here", NOW)
ANNS, BOBS = Account("https://login.example", "1"), Account("https://login.example", "2")
HOUR = timedelta(hours=1)
PER_DAY = 3


@dataclass
class Place:
    """A store in which ann and bob may log in, and its time. Certificates of logins last for 90 minutes."""

    store: Store
    time: datetime = NOW
    admission: Admission = field(init=False)
    tokens: int = 0

    def __post_init__(self) -> None:
        registry = recorded_registry(Operations(self.store, lambda: self.time, lambda: None))
        self.admission = Admission(registry, lambda: AUTHORITY, lambda *_: True, recorded_login, 397, 90, PER_DAY)
        for name, account in (("ann", ANNS), ("bob", BOBS)):
            self.admission.allow_login(name, Role.ANALYST, account, name, HOLDER)

    def log_in(self, account: Account = ANNS, asked: bytes | None = None) -> str:
        self.tokens += 1
        return self.admission.log_in(account, asked or signing_request(new_key()), f"token {self.tokens}")[0]

    def kept(self, name: str = "ann") -> int:
        with self.store.read() as connection:
            check_identities(connection)
            query = select(func.count()).where(certificates.c.name == name)
            return int(connection.execute(query).scalar_one())


@pytest.fixture
def place(store_url: str) -> Iterator[Place]:
    store = open_empty(store_url)
    yield Place(store)
    store.close()


def test_an_account_logs_in_so_often_a_day_and_no_other_account_notices(place: Place) -> None:
    for _ in range(PER_DAY):
        place.log_in()
        place.time += HOUR
    with pytest.raises(TooFast, match=r"^an account may log in 3 times a day; log in again later$") as refused:
        place.log_in()
    assert refused.value.retry_seconds == 0  # no client waits for hours
    assert place.log_in(BOBS) == "bob"
    place.time = NOW + timedelta(days=1)
    assert place.log_in() == "ann"
    with pytest.raises(TooFast):
        place.log_in()


def test_what_a_login_leaves_does_not_grow_for_ever(place: Place) -> None:
    """And a store without it is as its log says."""
    place.admission.renew("ann", {Role.ANALYST}, signing_request(new_key()), "by an operator", HOLDER)
    counts = []
    for _ in range(12):
        place.log_in()
        place.time += timedelta(hours=8)
        counts.append(place.kept())
    assert counts[0] == 2
    assert max(counts) == counts[-1] == 1 + 4  # those of the last day and a half, and the operator's


def test_a_key_that_was_revoked_stays_refused_however_long_ago(place: Place) -> None:
    asked = signing_request(new_key())
    place.log_in(asked=asked)
    place.admission.revoke("ann", {Role.ANALYST}, "revoke", HOLDER)
    place.admission.allow_login("ann", Role.ANALYST, ANNS, "again", HOLDER)
    for _ in range(3):
        place.time += timedelta(days=9)
        place.log_in()
    with pytest.raises(InvalidArgument, match="revoked"):
        place.log_in(asked=asked)
    # What had expired was no longer there to be revoked, and nothing is missed.
    place.admission.revoke("ann", {Role.ANALYST}, "revoke again", HOLDER)
    assert place.kept() == 2


def test_a_login_looks_at_no_other_certificate(place: Place) -> None:
    """One analyst's many logins would keep everybody's requests waiting: they happen where one at a time writes."""
    place.log_in()
    with place.store.write() as connection:
        connection.execute(update(certificates).values(certificate=b"what nobody can read"))
    assert place.log_in() == "ann"
