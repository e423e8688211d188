"""The registry of identities and of every certificate issued to them, in the store.

Trusted for roles and revocation: who can write the store can make anyone an operator, but without the
authority's key cannot make a certificate that says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from sqlalchemy import Connection, func, select

from equipoise.errors import AlreadyExists, DataLoss, InvalidArgument, NotAuthenticated
from equipoise_server.identity.authority import certificate_to_pem
from equipoise_server.identity.names import Caller, Role, check_name
from equipoise_server.storage.crash_points import CrashPoint, reached
from equipoise_server.storage.requests import Request, first_answer, keep_answer
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables import certificates, identities
from equipoise_server.storage.times import to_microseconds

DEFAULT_PAGE = 100
LARGEST_PAGE = 1000


@dataclass(frozen=True)
class Registry:
    """Who there is. Synchronous; safe to use from several threads."""

    store: Store

    def add(
        self,
        name: str,
        role: Role,
        certificate: x509.Certificate,
        now: datetime,
        request: Request | None = None,
    ) -> bytes:
        """Registers a new identity with its first certificate; gives the certificate that counts, in PEM.

        The same `request` again changes nothing and gives the first certificate. Raises `AlreadyExists` for a
        name that is taken and for another request under the same id.
        """
        check_name(name)
        pem = certificate_to_pem(certificate)
        serial = f"{certificate.serial_number:x}"
        with self.store.write() as connection:
            if request is not None and (answer := first_answer(connection, request)) is not None:
                return _stored_certificate(connection, answer)
            if connection.execute(select(identities.c.name).where(identities.c.name == name)).first():
                raise AlreadyExists(f"an identity named {name!r} is registered already")
            created = to_microseconds(now)
            connection.execute(identities.insert().values(name=name, role=role.value, created=created))
            connection.execute(
                certificates.insert().values(serial=serial, name=name, certificate=pem, created=created)
            )
            # A crash before the commit means: nobody was added, and the same request will add.
            if request is not None:
                keep_answer(connection, request, serial, now)
            reached(CrashPoint.ANALYST_WRITTEN)
        reached(CrashPoint.ANALYST_COMMITTED)
        return pem

    def caller(self, name: str, serial_number: int) -> Caller:
        """Who holds the certificate of this serial number now; `NotAuthenticated` if it is not in force."""
        query = (
            select(identities.c.role, certificates.c.revoked)
            .join(certificates, certificates.c.name == identities.c.name)
            .where(identities.c.name == name, certificates.c.serial == f"{serial_number:x}")
        )
        with self.store.read() as connection:
            row = connection.execute(query).first()
        if row is None or row.revoked is not None:
            raise NotAuthenticated("the certificate is not, or no longer, in force")
        return Caller(name, Role(row.role))

    def count(self) -> int:
        """How many identities there are, of all roles."""
        with self.store.read() as connection:
            return int(connection.execute(select(func.count()).select_from(identities)).scalar_one())

    def list(self, role: Role, page_size: int, page_token: str) -> tuple[list[str], str]:
        """Names with a role, in alphabetical order, and the token of the next page (empty on the last).

        `page_size` 0 stands for 100; at most 1,000. Raises `InvalidArgument` naming the parameter.
        """
        if page_size > LARGEST_PAGE or page_size < 0:
            raise InvalidArgument("page_size", f"must be at most {LARGEST_PAGE:,}")
        size = page_size or DEFAULT_PAGE
        # The token is the last name shown: pages stay right when names are added in between.
        if page_token:
            check_name(page_token, "page_token")
        query = (
            select(identities.c.name)
            .where(identities.c.role == role.value, identities.c.name > page_token)
            .order_by(identities.c.name)
            .limit(size + 1)
        )
        with self.store.read() as connection:
            names = [str(name) for name in connection.execute(query).scalars()]
        shown = names[:size]
        return shown, shown[-1] if len(names) > size else ""


def _stored_certificate(connection: Connection, serial: str) -> bytes:
    query = select(certificates.c.certificate).where(certificates.c.serial == serial)
    pem = connection.execute(query).scalar_one_or_none()
    if pem is None:
        raise DataLoss("a certificate that was issued is not in the store")
    return bytes(pem)
