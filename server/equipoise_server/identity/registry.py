"""The registry of identities and of every certificate issued to them, in the store.

A name is given once: also that of a deleted analyst stays taken, as what was charged for it stays charged. An
identity may hold several certificates, each good until it expires or is revoked, so that a new one can be put into
use while the old one still works. Revoking takes all that there are at that moment.

Trusted for roles and revocation: who can write the store can make anyone an operator, but without the
authority's key cannot make a certificate that says so. The other way round, a certificate that the authority's key
signed but that is not here, byte by byte, lets nobody in. Every change is put on record in its own transaction, so
that auditors see it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, bindparam, func, select

from equipoise.errors import (
    AlreadyExists,
    EquipoiseError,
    NotAuthenticated,
    NotFound,
)
from equipoise.model.identities import Caller, Identity, Role
from equipoise.model.times import to_microseconds
from equipoise.records.identity_items import IdentityEvent, IdentityItem, RecordedCertificate
from equipoise_server.identity.credential import Credential
from equipoise_server.identity.listing import page_of_identities, stored_credential
from equipoise_server.identity.login_bounds import Login
from equipoise_server.identity.names import check_name
from equipoise_server.identity.stored_certificates import (
    insert_credential,
    issued_certificate,
    revoked_key,
    with_key,
)
from equipoise_server.storage.idempotency import Request
from equipoise_server.storage.operations import Operations, no_answer
from equipoise_server.storage.tables.identity import certificates, identities, logins

SERIALS_AT_ONCE = 64  # in one statement
NOT_IN_FORCE = "the certificate is not, or no longer, in force"
# Every call needs this one. It is built once, because building it takes longer than SQLite's work.
_CALLER = (
    select(identities.c.role, certificates.c.certificate, certificates.c.revoked, certificates.c.used)
    .join(certificates, certificates.c.name == identities.c.name)
    .where(identities.c.name == bindparam("of"), certificates.c.serial == bindparam("id"))
)


# Puts a change of the registry on record, in the transaction that makes it.
Recorder = Callable[[Connection, IdentityItem, datetime], None]


@dataclass(frozen=True)
class Registry:
    """The registry of identities and their certificates. Synchronous; safe to use from several threads."""

    operations: Operations
    recorder: Recorder

    def add(self, name: str, role: Role, credential: Credential, request: Request) -> bytes:
        """Register a new identity with its first certificate, and return the certificate in force, in PEM.

        The same `request` again changes nothing and returns the first certificate, or the one that a new authority
        has signed in its place, or raises `InvalidArgument` if it was revoked since. Raises `AlreadyExists` for a
        name that is taken, also by a deleted identity or in another case, and for another request with the same id.
        """
        check_name(name)

        def work(connection: Connection, now: datetime) -> str:
            same = func.lower(identities.c.name) == name.lower()
            taken = connection.execute(select(identities.c.name, identities.c.deleted).where(same)).first()
            if taken is not None:
                since = "is already registered" if taken.deleted is None else "was deleted; its name stays taken"
                raise AlreadyExists(f"an identity named {taken.name!r} {since}")
            created = to_microseconds(now)
            connection.execute(identities.insert().values(name=name, role=role.value, created=created))
            self.recorded(connection, IdentityEvent.ADDED, name, role, [credential], request.caller, now)
            return insert_credential(connection, name, credential, now)

        return self.operations.carry_out(request, work, issued_certificate)

    def renew(
        self,
        name: str,
        roles: Collection[Role],
        credential: Credential,
        request: Request,
        login: Login | None = None,
    ) -> bytes:
        """Add a certificate to an identity with one of `roles`, and return the certificate in force, in PEM.

        `login`: of an identity that logs in, with what is asked of it.

        A new certificate also admits an identity again after a revocation. The key of a revoked certificate raises
        `InvalidArgument`, even if the same request comes again. Raises `NotFound`, `AlreadyExists` for another
        request with the same id, and for a login `NotAuthenticated` and `TooFast`.
        """

        def work(connection: Connection, now: datetime) -> str:
            role = check_there(connection, name, roles)
            if login is not None:
                login.admit(connection, name, now)
            own = with_key(connection, name, credential)
            # A certificate also ends with the authority that signed it, and its key then has another.
            if own and all(row.revoked is not None for row in own):
                raise revoked_key()
            account = None if login is None else login.account
            self.recorded(connection, IdentityEvent.RENEWED, name, role, [credential], request.caller, now, account)
            return insert_credential(connection, name, credential, now, login is not None)

        return self.operations.carry_out(request, work, issued_certificate)

    def revoke(self, name: str, roles: Collection[Role], request: Request) -> None:
        """Revoke every certificate of an identity with one of `roles`; none may be left. Raises `NotFound`."""

        def work(connection: Connection, now: datetime) -> str:
            role = check_there(connection, name, roles)
            revoked = _revoke_certificates(connection, name, now)
            self.recorded(connection, IdentityEvent.REVOKED, name, role, revoked, request.caller, now)
            return ""

        self.operations.carry_out(request, work, no_answer)

    def mark_deleted(self, connection: Connection, name: str, by: str, now: datetime) -> None:
        """Mark an analyst as deleted, in the connection's transaction. Its name stays taken for ever."""
        revoked = _revoke_certificates(connection, name, now)
        self.recorded(connection, IdentityEvent.DELETED, name, Role.ANALYST, revoked, by, now)
        gone = identities.update().where(identities.c.name == name).values(deleted=to_microseconds(now))
        connection.execute(gone)

    def caller(self, name: str, credential: Credential) -> Caller:
        """Return the caller `name` who has this credential. Raises `NotAuthenticated` if it is not in force."""
        with self.operations.store.read() as connection:
            row = connection.execute(_CALLER, {"of": name, "id": credential.id}).first()
        if row is None or row.revoked is not None or bytes(row.certificate) != credential.content:
            raise NotAuthenticated(NOT_IN_FORCE)
        if row.used is None:
            self._note_use(credential)
        return Caller(name, Role(row.role))

    def in_force(self, serials: Collection[str]) -> set[str]:
        """Return those of the serial numbers whose certificates are recorded and not revoked."""
        asked = sorted(serials)
        # Pad with a serial number that no certificate has, so that one prepared statement serves any number.
        asked += [""] * (-len(asked) % SERIALS_AT_ONCE)
        good = select(certificates.c.serial).where(certificates.c.revoked.is_(None))
        in_force: set[str] = set()
        with self.operations.store.read() as connection:
            for start in range(0, len(asked), SERIALS_AT_ONCE):
                some = certificates.c.serial.in_(asked[start : start + SERIALS_AT_ONCE])
                in_force.update(connection.execute(good.where(some)).scalars())
        return in_force

    def count(self) -> int:
        """Return the number of identities of all roles, without deleted ones."""
        query = select(func.count()).select_from(identities).where(identities.c.deleted.is_(None))
        with self.operations.store.read() as connection:
            return int(connection.execute(query).scalar_one())

    def list(self, roles: Collection[Role], page_size: int = 0, page_token: str = "") -> tuple[list[Identity], str]:
        """Return a page of the identities by name, without deleted ones.

        Args:
            roles: Of which each has one.
            page_size: At most 1,000; 0 stands for 100.
            page_token: Of the page before; empty for the first.

        Returns:
            The identities, and the token of the next page, empty on the last.

        Raises:
            InvalidArgument: Naming the parameter.
        """
        with self.operations.store.read() as connection:
            return page_of_identities(connection, roles, page_size, page_token)

    def _note_use(self, credential: Credential) -> None:
        """Note the first call with a certificate; where the store cannot be written now, the next call does."""
        used = certificates.update().where(certificates.c.serial == credential.id)
        with suppress(EquipoiseError), self.operations.store.write() as connection:
            connection.execute(used.values(used=to_microseconds(self.operations.clock())))

    def recorded(
        self,
        connection: Connection,
        event: IdentityEvent,
        name: str,
        role: Role,
        changed: Collection[Credential],
        by: str,
        now: datetime,
        login: bytes | None = None,
    ) -> None:
        """Put a change on record, in the transaction that makes it."""
        known = tuple(RecordedCertificate(each.digest, to_microseconds(each.expiry)) for each in changed)
        self.recorder(connection, IdentityItem(event, name, role, known, by, to_microseconds(now), login), now)


def check_there(connection: Connection, name: str, roles: Collection[Role]) -> Role:
    """Return the role of `name`.

    Raises `NotFound`, always in the same words, where `name` is unknown, deleted, or has none of `roles`.
    """
    query = select(identities.c.role).where(identities.c.name == name, identities.c.deleted.is_(None))
    role = connection.execute(query).scalar_one_or_none()
    if role not in [allowed.value for allowed in roles]:
        (word,) = roles if len(roles) == 1 else ("identity",)
        raise NotFound(f"there is no such {word}")
    return Role(role)


def _revoke_certificates(connection: Connection, name: str, now: datetime) -> list[Credential]:
    """Revoke an identity's certificates and its login, and return them. Earlier revocations keep their time."""
    connection.execute(logins.delete().where(logins.c.name == name))
    unrevoked = and_(certificates.c.name == name, certificates.c.revoked.is_(None))
    query = select(certificates.c.certificate).where(unrevoked).order_by(certificates.c.created)
    revoked = [stored_credential(content) for content in connection.execute(query).scalars()]
    connection.execute(certificates.update().where(unrevoked).values(revoked=to_microseconds(now)))
    return revoked
