"""Who may log in with which account of an identity provider.

A login is a way to a certificate and nothing else: name and role are the registry's. One account stands for one
identity, and one identity has one account. Revoking or deleting an identity takes its account away, so that nobody
who was revoked lets itself in again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from equipoise.errors import AlreadyExists, NotAuthenticated, NotFound
from equipoise.model.identities import Role
from equipoise.model.times import to_microseconds
from equipoise.records.identity_items import IdentityEvent
from equipoise_server.identity.login_tokens import Account
from equipoise_server.identity.names import check_name
from equipoise_server.identity.registry import Registry
from equipoise_server.storage.idempotency import Request
from equipoise_server.storage.operations import no_answer
from equipoise_server.storage.tables.identity import identities, logins

REFUSED = "the login was refused"  # whatever the reason is


@dataclass(frozen=True)
class Logins:
    """The accounts with which identities log in. Synchronous; safe to use from several threads."""

    registry: Registry

    def allow(self, name: str, role: Role, account: Account, request: Request) -> None:
        """Let an identity log in with an account, instead of with the one before.

        An identity of a new name is admitted, without a certificate. The same request again changes nothing.

        Args:
            name: Of the identity.
            role: Its role; of somebody who was admitted before, the role it has.
            account: At the identity provider.
            request: Makes it safe to repeat.

        Raises:
            AlreadyExists: The account is another identity's, or the name, in another case.
            InvalidArgument: The name is none.
            NotFound: The name was deleted, or has another role.
        """
        check_name(name)

        def work(connection: Connection, now: datetime) -> str:
            same = func.lower(identities.c.name) == name.lower()
            there = connection.execute(select(identities).where(same)).first()
            if there is None:
                row = {"name": name, "role": role.value, "created": to_microseconds(now)}
                connection.execute(identities.insert().values(row))
            elif there.name != name:
                raise AlreadyExists(f"an identity named {there.name!r} is already registered")
            elif there.deleted is not None or there.role != role.value:
                raise NotFound(f"{name} was deleted, or is no {role}")
            other = holder(connection, account)
            if other is not None and other != name:
                raise AlreadyExists("the account logs in another identity")
            connection.execute(logins.delete().where(logins.c.name == name))
            row = {"name": name, "issuer": account.issuer, "subject": account.subject}
            connection.execute(logins.insert().values(row))
            self.registry.recorded(
                connection, IdentityEvent.LOGIN, name, role, [], request.caller, now, account.digest
            )
            return ""

        self.registry.operations.carry_out(request, work, no_answer)

    def name_of(self, account: Account) -> str:
        """Return whom an account logs in. Raises `NotAuthenticated`, in the words for every refused login."""
        with self.registry.operations.store.read() as connection:
            name = holder(connection, account)
        if name is None:
            raise NotAuthenticated(REFUSED)
        return name


def holder(connection: Connection, account: Account) -> str | None:
    """Return the name of the identity that an account logs in, None for nobody's."""
    same = (logins.c.issuer == account.issuer) & (logins.c.subject == account.subject)
    return connection.execute(select(logins.c.name).where(same)).scalar_one_or_none()
