"""Puts changes of the registry on record, for auditors."""

from __future__ import annotations

from datetime import datetime

from cryptography.hazmat.primitives import hashes
from sqlalchemy import Connection, select

from equipoise.errors import DataLoss, VerificationFailed
from equipoise.records.identity_items import (
    LOGIN_EVENTS,
    AuthorityEvent,
    AuthorityItem,
    IdentityEvent,
    IdentityItem,
)
from equipoise.records.opened_records import check_hashes
from equipoise.records.record import Audience, Kind
from equipoise.records.record_layouts import make_item, read_item
from equipoise_server.identity.authority import Authority
from equipoise_server.identity.registry import Registry
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.tables.transparency import record_items, records
from equipoise_server.transparency.record_writer import record, stored_openings


def recorded_registry(operations: Operations) -> Registry:
    """Return the registry of a store, all of whose changes go on record."""
    return Registry(operations, identity_changed)


def identity_changed(connection: Connection, item: IdentityItem, now: datetime) -> None:
    """Record a change of the registry, in the transaction that makes it."""
    login_of = item.name if item.event in LOGIN_EVENTS else None
    record(connection, Kind.IDENTITY_CHANGED, [make_item(item, Audience.AUDITOR)], now=now, login_of=login_of)


def recorded_login(connection: Connection, name: str) -> bytes | None:
    """Return the digest of the account that the log lets an identity log in with, None for no account.

    One record is read, however many there are of the identity. Raises `DataLoss` where it is damaged.
    """
    query = select(records).where(records.c.login_of == name).order_by(records.c.position.desc()).limit(1)
    row = connection.execute(query).first()
    if row is None:
        return None
    what = f"record {row.position}, {row.kind}, is damaged"
    try:
        items, padding = stored_openings(connection, row.position)
        check_hashes(row.leaf, items, padding, what)
        item = read_item(items[0].content, IdentityItem)
    except VerificationFailed as error:
        raise DataLoss(error.message) from None
    return item.login if item.name == name and item.event is IdentityEvent.LOGIN else None


def authority_changed(connection: Connection, item: AuthorityItem, now: datetime) -> None:
    """Record an exchange of the authority, in the transaction that makes it."""
    record(connection, Kind.AUTHORITY_CHANGED, [make_item(item, Audience.AUDITOR)], now=now)


def newest_authority_change(connection: Connection) -> tuple[AuthorityEvent, bytes] | None:
    """Return what was last recorded of an authority, and the digest of its certificate; None where nothing was."""
    query = select(record_items.c.content).join(records, record_items.c.record == records.c.position)
    query = query.where(records.c.round_id == "", records.c.kind == Kind.AUTHORITY_CHANGED.value)
    query = query.where(record_items.c.content.is_not(None)).order_by(records.c.position.desc()).limit(1)
    content = connection.execute(query).scalar_one_or_none()
    if content is None:
        return None
    item = read_item(content, AuthorityItem)
    return item.event, item.authority


def authority_is_recorded(connection: Connection, authority: Authority) -> bool:
    """Return whether an authority is the one in force on record.

    It is not where it was read before an exchange, or is new and its exchange is not complete. What it signed then
    would be no part of the exchange, and so end without a successor.
    """
    change = newest_authority_change(connection)
    if change is None:
        return authority.predecessor is None
    return change[1] == authority.certificate.fingerprint(hashes.SHA256())
