"""What an exchange of the authority means for the registry: certificates that are signed anew, used, and revoked.

Every certificate that is in force gets a successor for the same name and key, which ends at the same time. So
nobody has to be admitted again, and nobody is admitted for longer. Its holder fetches it while the old one works.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from cryptography import x509
from sqlalchemy import Connection, Row, select

from equipoise.model.times import to_microseconds
from equipoise.records.identity_items import HeldCertificate
from equipoise_server.identity.authority import Authority
from equipoise_server.identity.credential import credential_of
from equipoise_server.storage.tables.identity import certificates


def reissue(connection: Connection, authority: Authority, now: datetime) -> tuple[HeldCertificate, ...]:
    """Sign anew what is in force and was signed by the predecessor, and return the new certificates."""
    issued = []
    for row, certificate in list(_in_force(connection, now)):
        if not authority.issued(certificate):
            new = credential_of(authority.reissue_identity(row.name, certificate, now))
            values = {"serial": new.id, "name": row.name, "created": to_microseconds(now)}
            connection.execute(certificates.insert().values(values | {"certificate": new.content}))
            issued.append(HeldCertificate(new.digest, to_microseconds(new.expiry), row.name))
    return tuple(issued)


def left_behind(connection: Connection, authority: Authority, now: datetime) -> list[str]:
    """Return who has a certificate of the predecessor and has never called with one of this authority."""
    old, new = set(), set()
    for row, certificate in _in_force(connection, now):
        if not authority.issued(certificate):
            old.add(row.name)
        elif row.used is not None:
            new.add(row.name)
    return sorted(old - new)


def revoke_predecessor(connection: Connection, authority: Authority, now: datetime) -> tuple[HeldCertificate, ...]:
    """Revoke what is in force and was not signed by the authority's present key, and return it."""
    revoked = []
    for row, certificate in list(_in_force(connection, now)):
        if not authority.issued(certificate):
            here = certificates.c.serial == row.serial
            connection.execute(certificates.update().where(here).values(revoked=to_microseconds(now)))
            known = credential_of(certificate)
            revoked.append(HeldCertificate(known.digest, to_microseconds(known.expiry), row.name))
    return tuple(revoked)


def certificates_of(connection: Connection, authority: Authority, name: str, now: datetime) -> list[bytes]:
    """Return somebody's certificates in force that the authority's present key has signed, in PEM, newest first."""
    held = [
        row for row, certificate in _in_force(connection, now) if row.name == name and authority.issued(certificate)
    ]
    return [bytes(row.certificate) for row in sorted(held, key=lambda row: row.created, reverse=True)]


def _in_force(connection: Connection, now: datetime) -> Iterator[tuple[Row[Any], x509.Certificate]]:
    query = select(certificates).where(certificates.c.revoked.is_(None)).order_by(certificates.c.created)
    for row in connection.execute(query):
        certificate = x509.load_pem_x509_certificate(row.certificate)
        if certificate.not_valid_after_utc > now:
            yield row, certificate
