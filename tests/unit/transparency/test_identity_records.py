"""Changes of the registry on record: each in the transaction that makes it, for auditors alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives import hashes
from harness.stores import open_empty
from sqlalchemy import Connection, select

from equipoise.errors import NotAuthenticated
from equipoise.model.identities import Role
from equipoise.model.times import to_microseconds
from equipoise.records.identity_items import IdentityEvent, IdentityItem, RecordedCertificate
from equipoise.records.record_layouts import read_item
from equipoise_server.identity.authority import Authority, new_key
from equipoise_server.identity.credential import credential_of
from equipoise_server.identity.registry import Registry
from equipoise_server.storage.idempotency import make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.tables.transparency import record_items
from equipoise_server.transparency.identity_records import recorded_registry
from equipoise_server.transparency.record_writer import check_records

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AUTHORITY = Authority.create("here", NOW)
FIRST, SECOND = (AUTHORITY.issue_identity("ann", new_key().public_key(), NOW) for _ in range(2))
ANALYST = {Role.ANALYST}


@pytest.fixture
def registry(store_url: str) -> Iterator[Registry]:
    store = open_empty(store_url)
    yield recorded_registry(Operations(store, lambda: NOW, lambda: None))
    store.close()


def recorded(registry: Registry) -> list[IdentityItem]:
    """All changes on record, each of which only auditors may open."""
    with registry.operations.store.read() as connection:
        rows = connection.execute(select(record_items).where(record_items.c.content.is_not(None))).all()
        check_records(connection)
    assert {row.audience for row in rows} <= {"auditor"}
    return [read_item(row.content, IdentityItem) for row in sorted(rows, key=lambda row: row.record)]


def test_every_change_is_on_record_once(registry: Registry) -> None:
    first, second = credential_of(FIRST), credential_of(SECOND)
    for _ in range(2):  # the same requests again change nothing
        registry.add("ann", Role.ANALYST, first, make_request("operator/olga", "1", "add_identity", "ann"))
        registry.renew("ann", ANALYST, second, make_request("holder", "2", "renew_identity", "ann"))
    registry.revoke("ann", ANALYST, make_request("operator/olga", "3", "revoke_identity", "ann"))
    with registry.operations.store.write() as connection:
        registry.mark_deleted(connection, "ann", "operator/otto", NOW)
    known = tuple(
        RecordedCertificate(each.fingerprint(hashes.SHA256()), to_microseconds(each.not_valid_after_utc))
        for each in (FIRST, SECOND)
    )
    told = [
        (IdentityEvent.ADDED, known[:1], "operator/olga"),
        (IdentityEvent.RENEWED, known[1:], "holder"),
        (IdentityEvent.REVOKED, known, "operator/olga"),
        (IdentityEvent.DELETED, (), "operator/otto"),
    ]
    now = to_microseconds(NOW)
    found = recorded(registry)
    assert [set(each.certificates) for each in found] == [set(certificates) for _, certificates, _ in told]
    assert [(each.event, each.by) for each in found] == [(event, by) for event, _, by in told]
    assert {(each.name, each.role, each.time) for each in found} == {("ann", Role.ANALYST, now)}


def test_nobody_is_admitted_whose_admission_cannot_be_put_on_record(store_url: str) -> None:
    def failing(*_: object) -> None:
        raise LookupError("no room")

    store = open_empty(store_url)
    registry = Registry(Operations(store, lambda: NOW, lambda: None), failing)
    with pytest.raises(LookupError, match="no room"):
        registry.add(
            "ann", Role.ANALYST, credential_of(FIRST), make_request("operator/olga", "1", "add_identity", "ann")
        )
    with pytest.raises(NotAuthenticated):
        registry.caller("ann", credential_of(FIRST))
    store.close()


def test_nobody_stays_out_whose_revocation_cannot_be_put_on_record(registry: Registry) -> None:
    """Else somebody could be locked out without a trace."""

    def failing(_: Connection, item: IdentityItem, __: datetime) -> None:
        raise LookupError(item.event)

    registry.add(
        "ann", Role.ANALYST, credential_of(FIRST), make_request("operator/olga", "1", "add_identity", "ann")
    )
    silent = Registry(registry.operations, failing)
    with pytest.raises(LookupError, match="revoked"):
        silent.revoke("ann", ANALYST, make_request("operator/olga", "2", "revoke_identity", "ann"))
    assert registry.caller("ann", credential_of(FIRST)).name == "ann"
    assert [each.event for each in recorded(registry)] == [IdentityEvent.ADDED]
