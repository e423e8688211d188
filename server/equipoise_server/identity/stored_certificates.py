"""The certificates that the registry keeps of an identity, by their holder's key."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from equipoise.errors import DataLoss, InvalidArgument
from equipoise.model.times import to_microseconds
from equipoise_server.identity.credential import Credential
from equipoise_server.identity.listing import stored_credential
from equipoise_server.storage.tables.identity import certificates


def insert_credential(
    connection: Connection, name: str, credential: Credential, now: datetime, login: bool = False
) -> str:
    """Store a credential, and return its number.

    Args:
        connection: Of the transaction.
        name: Of the identity that it was issued to.
        credential: The credential.
        now: The time.
        login: Whether it was had by logging in.
    """
    row = {
        "serial": credential.id,
        "name": name,
        "key": credential.key_digest,
        "certificate": credential.content,
        "created": to_microseconds(now),
        "expires": to_microseconds(credential.expiry),
        "login": login,
    }
    connection.execute(certificates.insert().values(row))
    return credential.id


def issued_certificate(connection: Connection, serial: str) -> bytes:
    """Return the certificate with this number, or what a new authority signed in its place: same key, same end."""
    first = connection.execute(select(certificates).where(certificates.c.serial == serial)).first()
    if first is None:
        raise DataLoss("the store lacks a certificate that was issued")
    issued = stored_credential(first.certificate)
    alike = [
        row
        for row in with_key(connection, first.name, issued)
        if row.revoked is None and row.expires == first.expires
    ]
    if not alike:
        # Returning the first one would look like a success, although the server refuses this certificate.
        raise revoked_key()
    return bytes(max(alike, key=lambda row: (row.created, row.serial != serial)).certificate)


def with_key(connection: Connection, name: str, credential: Credential) -> list[Row[Any]]:
    """Return the certificates that somebody ever had for the key of a credential."""
    same = (certificates.c.name == name) & (certificates.c.key == credential.key_digest)
    return list(connection.execute(select(certificates).where(same)).all())


def revoked_key() -> InvalidArgument:
    """Return the refusal of a key whose certificates were all revoked."""
    return InvalidArgument(
        "signing_request", "its key belongs to a revoked certificate; make a new key and request"
    )
