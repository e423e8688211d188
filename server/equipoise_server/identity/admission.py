"""Admission of identities: a certificate is issued, registered and known to the guard before it is returned.

Operators admit analysts over the network. The holder of the state directory admits anybody, without a server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime

import structlog
from sqlalchemy import Connection

from equipoise.errors import AlreadyExists, NotAuthenticated, Unavailable
from equipoise.model.identities import Role
from equipoise.records.identity_items import IdentityItem
from equipoise_server.identity.authority import Authority
from equipoise_server.identity.credential import Credential, credential_of
from equipoise_server.identity.enrolment import requested_key
from equipoise_server.identity.login_bounds import Login
from equipoise_server.identity.login_tokens import Account
from equipoise_server.identity.logins import REFUSED, Logins, holder
from equipoise_server.identity.names import check_name
from equipoise_server.identity.registry import Registry
from equipoise_server.storage.idempotency import make_request

HOLDER = "holder"  # the caller's name for requests by the holder of the state directory
MINUTES_OF_A_DAY = 24 * 60
_log = structlog.get_logger("equipoise.login")


@dataclass(frozen=True)
class Admission:
    """Admits, renews and revokes identities of one deployment.

    `authority` returns the present one, which may be exchanged while a server runs; `in_force` returns whether one
    is in force by the store. `recorded_login` returns the digest of the account with which somebody may log in by
    the log, None for no account. `caller` in the methods is the identity that makes the request; its `request_id`s
    are its own.
    """

    registry: Registry
    authority: Callable[[], Authority]
    in_force: Callable[[Connection, Authority], bool]
    recorded_login: Callable[[Connection, str], bytes | None]
    certificate_days: int
    login_minutes: int
    logins_per_day: int

    def admit(self, name: str, role: Role, signing_request: bytes, request_id: str, caller: str) -> bytes:
        """Admit a new identity: sign the key of a signing request under a name.

        The same request again gets the same certificate, or its successor by a new authority.

        Args:
            name: Of the new identity; it stays taken for ever.
            role: What it may do.
            signing_request: In PEM.
            request_id: Makes the call safe to repeat.
            caller: Who admits.

        Returns:
            The certificate, in PEM.

        Raises:
            InvalidArgument: The name or the signing request cannot be taken.
            AlreadyExists: The name is taken.
            Unavailable: The authority is being exchanged.
        """
        request = make_request(caller, request_id, "add_identity", name, role.value, signing_request)
        authority = self.authority()
        return self._registry(authority).add(name, role, self._issue(authority, name, signing_request), request)

    def renew(
        self, name: str, roles: Collection[Role], signing_request: bytes, request_id: str, caller: str
    ) -> bytes:
        """Sign a further certificate for an identity.

        Args:
            name: Of the identity.
            roles: Of which it must have one.
            signing_request: In PEM.
            request_id: Makes the call safe to repeat.
            caller: Who renews.

        Returns:
            The certificate, in PEM.

        Raises:
            NotFound: There is no such identity with one of these roles.
            InvalidArgument: The signing request cannot be taken, or its key's certificate was revoked.
            Unavailable: The authority is being exchanged.
        """
        request = make_request(caller, request_id, "renew_identity", name, signing_request)
        authority = self.authority()
        return self._registry(authority).renew(name, roles, self._issue(authority, name, signing_request), request)

    def allow_login(self, name: str, role: Role, account: Account, request_id: str, caller: str) -> None:
        """Let an identity log in with an account, and admit it if nobody has the name.

        Args:
            name: Of the identity.
            role: Its role.
            account: At the identity provider.
            request_id: Makes the call safe to repeat.
            caller: Who allows it.

        Raises:
            AlreadyExists: The account is another identity's.
            InvalidArgument: The name is none.
            NotFound: The name was deleted, or has another role.
        """
        request = make_request(caller, request_id, "add_identity", "login", name, role.value, account.digest)
        Logins(self.registry).allow(name, role, account, request)

    def log_in(self, account: Account, signing_request: bytes, token: str) -> tuple[str, bytes]:
        """Sign a certificate of minutes for whom an account logs in. A token gets one certificate, however often.

        Args:
            account: That a checked token was issued for.
            signing_request: Of the key that the token's nonce is of, in PEM.
            token: The token.

        Returns:
            The identity's name, and the certificate in PEM.

        Raises:
            NotAuthenticated: The account logs nobody in by the store, or by the log, or the token was used before
                with another request.
            InvalidArgument: The key's certificate was revoked.
            TooFast: The account has logged in too often within a day.
            Unavailable: The authority is being exchanged.
        """
        name = Logins(self.registry).name_of(account)
        used = hashlib.sha256(token.encode()).hexdigest()
        request = make_request(f"login/{name}", used, "renew_identity", "login", signing_request)
        authority = self.authority()
        credential = self._issue(authority, name, signing_request, self.login_minutes / MINUTES_OF_A_DAY)

        def allowed(connection: Connection) -> bool:
            if holder(connection, account) != name:
                return False
            # Who can write the store could enter an account there, so the log must have it, too.
            on_record = self.recorded_login(connection, name) == account.digest
            if not on_record:
                _log.error("login_not_on_record", name=name, remedy="equipoise-server check")
            return on_record

        login = Login(account.digest, allowed, self.logins_per_day)
        try:
            return name, self._registry(authority).renew(name, frozenset(Role), credential, request, login)
        except (AlreadyExists, NotAuthenticated):
            raise NotAuthenticated(REFUSED) from None

    def revoke(self, name: str, roles: Collection[Role], request_id: str, caller: str) -> None:
        """Revoke every certificate of an identity with one of `roles`. Its open calls end within a minute.

        Raises `NotFound`.
        """
        self.registry.revoke(name, roles, make_request(caller, request_id, "revoke_identity", name))

    def _registry(self, authority: Authority) -> Registry:
        """The registry, in whose transactions nothing is registered that an authority signed which is not in force.

        The authority signs before the transaction, and may be exchanged in between.
        """

        def record(connection: Connection, change: IdentityItem, now: datetime) -> None:
            if not self.in_force(connection, authority):
                raise Unavailable("the authority is being exchanged; try again in a moment")
            self.registry.recorder(connection, change, now)

        return replace(self.registry, recorder=record)

    def _issue(
        self, authority: Authority, name: str, signing_request: bytes, days: float | None = None
    ) -> Credential:
        """Issue a certificate, for the usual time or another. It has no effect until it is in the registry."""
        check_name(name)
        key = requested_key(signing_request)
        now = self.registry.operations.clock()
        return credential_of(authority.issue_identity(name, key, now, days or self.certificate_days))
