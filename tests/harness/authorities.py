"""What a state directory holds of its authorities, old and new."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import select

from equipoise.profile.certificates import read_certificate
from equipoise.records.identity_items import AuthorityEvent, AuthorityItem
from equipoise.records.record_layouts import read_item
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.storage.tables.identity import certificates
from equipoise_server.storage.tables.transparency import record_items, records

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def clock() -> datetime:
    return NOW


def certified(state: Path) -> dict[bytes, bool]:
    """The certificates in force, and whether the present authority has signed each."""
    deployment = open_deployment(state, NOW)
    store = deployment.open_store()
    with store.read() as connection:
        held = connection.execute(select(certificates.c.certificate).where(certificates.c.revoked.is_(None)))
        found = [bytes(each) for each in held.scalars()]
    store.close()
    return {pem: deployment.authority.issued(read_certificate(pem)) for pem in found}


def events(state: Path) -> list[AuthorityEvent]:
    """What the log says of authorities."""
    store = open_deployment(state, NOW).open_store()
    with store.read() as connection:
        query = select(record_items.c.content).join(records, record_items.c.record == records.c.position)
        kind = records.c.kind == "authority-changed"
        query = query.where(kind, record_items.c.content.is_not(None)).order_by(records.c.position)
        found = [read_item(content, AuthorityItem).event for content in connection.execute(query).scalars()]
    store.close()
    return found
