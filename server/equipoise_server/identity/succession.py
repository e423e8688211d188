"""What an exchange of the authority means for the registry: certificates that are signed anew, used, and revoked.

Every certificate that is in force gets a successor for the same name and key, which ends at the same time. So
nobody has to be admitted again, and nobody is admitted for longer. Its holder fetches it while the old one works.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from cryptography import x509
from sqlalchemy import ColumnElement, Connection, Row, select

from equipoise.model.times import to_microseconds
from equipoise.records.identity_items import HeldCertificate
from equipoise_server.identity.authority import Authority
from equipoise_server.identity.credential import credential_of
from equipoise_server.identity.stored_certificates import insert_credential
from equipoise_server.storage.tables.identity import certificates


def reissue(connection: Connection, authority: Authority, now: datetime) -> tuple[HeldCertificate, ...]:
    """Sign anew what is in force and was signed by the predecessor, and return the new certificates."""
    issued = []
    for row, certificate in list(_in_force(connection, now)):
        if not authority.issued(certificate):
            new = credential_of(authority.reissue_identity(row.name, certificate, now))
            insert_credential(connection, row.name, new, now)
            issued.append(HeldCertificate(new.digest, to_microseconds(new.expiry), row.name))
    return tuple(issued)


def left_behind(connection: Connection, authority: Authority, now: datetime) -> list[str]:
    """Return who has a key that the predecessor certified, and has never called with this authority's certificate.

    Somebody may have several keys, each on another device. Where not all are left behind, a name says how many are.
    """
    old: dict[str, set[bytes]] = defaultdict(set)
    new: dict[str, set[bytes]] = defaultdict(set)
    for row, certificate in _in_force(connection, now):
        if not authority.issued(certificate):
            old[row.name].add(row.key)
        elif row.used is not None:
            new[row.name].add(row.key)
    behind = {name: len(keys - new[name]) for name, keys in sorted(old.items()) if keys - new[name]}
    return [
        name if keys == len(old[name]) else f"{name} ({keys} of {len(old[name])} keys)"
        for name, keys in behind.items()
    ]


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
    own = certificates.c.name == name
    held = [row for row, certificate in _in_force(connection, now, own) if authority.issued(certificate)]
    return [bytes(row.certificate) for row in sorted(held, key=lambda row: row.created, reverse=True)]


def _in_force(
    connection: Connection, now: datetime, *those: ColumnElement[bool]
) -> Iterator[tuple[Row[Any], x509.Certificate]]:
    in_force = certificates.c.revoked.is_(None), certificates.c.expires > to_microseconds(now)
    query = select(certificates).where(*in_force, *those).order_by(certificates.c.created)
    for row in connection.execute(query):
        yield row, x509.load_pem_x509_certificate(row.certificate)
