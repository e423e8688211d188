"""Analysts who are admitted without a request: in the registry, with a certificate, and on record."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache

from sqlalchemy import Connection

from equipoise.model.identities import Role
from equipoise.model.times import to_microseconds
from equipoise.records.identity_items import IdentityEvent, IdentityItem, RecordedCertificate
from equipoise_server.identity.authority import Authority, new_key
from equipoise_server.identity.credential import Credential, credential_of
from equipoise_server.identity.stored_certificates import insert_credential
from equipoise_server.storage.tables.identity import identities
from equipoise_server.transparency.identity_records import identity_changed

DAYS = 3650


def admit(connection: Connection, names: Sequence[str], now: datetime) -> None:
    """Nobody can connect as them: their keys are gone."""
    created = to_microseconds(now)
    for name in names:
        issued = certified(name, now)
        connection.execute(identities.insert().values(name=name, role="analyst", created=created))
        insert_credential(connection, name, issued, now)
        known = (RecordedCertificate(issued.digest, to_microseconds(issued.expiry)),)
        item = IdentityItem(IdentityEvent.ADDED, name, Role.ANALYST, known, "operator/olga", created, None)
        identity_changed(connection, item, now)


@cache
def certified(name: str, now: datetime) -> Credential:
    """A certificate that outlasts most tests."""
    return credential_of(Authority.create("bench", now).issue_identity(name, new_key().public_key(), now, DAYS))
