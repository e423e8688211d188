"""Puts changes of the registry on record, for auditors."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from equipoise.records.identity_items import IdentityItem
from equipoise.records.record import Audience, Kind
from equipoise.records.record_layouts import make_item
from equipoise_server.identity.registry import Registry
from equipoise_server.storage.operations import Operations
from equipoise_server.transparency.record_writer import record


def recorded_registry(operations: Operations) -> Registry:
    """Return the registry of a store, all of whose changes go on record."""
    return Registry(operations, identity_changed)


def identity_changed(connection: Connection, item: IdentityItem, now: datetime) -> None:
    """Record a change of the registry, in the transaction that makes it."""
    record(connection, Kind.IDENTITY_CHANGED, [make_item(item, Audience.AUDITOR)], now=now)
