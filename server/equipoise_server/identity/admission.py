"""Admission of identities: a certificate is issued, registered and known to the guard before it is returned.

Operators admit analysts over the network. The holder of the state directory admits anybody, without a server.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from equipoise.model.identities import Role
from equipoise_server.identity.authority import Authority
from equipoise_server.identity.credential import Credential, credential_of
from equipoise_server.identity.enrolment import requested_key
from equipoise_server.identity.names import check_name
from equipoise_server.identity.registry import Registry
from equipoise_server.storage.idempotency import make_request

HOLDER = "holder"  # the caller's name for requests by the holder of the state directory


@dataclass(frozen=True)
class Admission:
    """Admits, renews and revokes identities of one deployment.

    `authority` returns the present one, which may be exchanged while a server runs. `caller` in the methods is the
    identity that makes the request; its `request_id`s are its own.
    """

    registry: Registry
    authority: Callable[[], Authority]
    certificate_days: int

    def admit(self, name: str, role: Role, signing_request: bytes, request_id: str, caller: str) -> bytes:
        """Admit a new identity: sign the key of a PEM signing request under a name, and return the PEM certificate.

        The same request again gets the same certificate. Raises `InvalidArgument`, `AlreadyExists` for a name that
        is taken.
        """
        request = make_request(caller, request_id, "add_identity", name, role.value, signing_request)
        return self.registry.add(name, role, self._issue(name, signing_request), request)

    def renew(
        self, name: str, roles: Collection[Role], signing_request: bytes, request_id: str, caller: str
    ) -> bytes:
        """Sign a further certificate for an identity with one of `roles`, and return it in PEM.

        Raises `NotFound`; `InvalidArgument`, also for the key of a revoked certificate.
        """
        request = make_request(caller, request_id, "renew_identity", name, signing_request)
        return self.registry.renew(name, roles, self._issue(name, signing_request), request)

    def revoke(self, name: str, roles: Collection[Role], request_id: str, caller: str) -> None:
        """Revoke every certificate of an identity with one of `roles`. Its open calls end within a minute.

        Raises `NotFound`.
        """
        self.registry.revoke(name, roles, make_request(caller, request_id, "revoke_identity", name))

    def _issue(self, name: str, signing_request: bytes) -> Credential:
        """Issue a certificate. It has no effect until it is in the registry."""
        check_name(name)
        key = requested_key(signing_request)
        now = self.registry.operations.clock()
        return credential_of(self.authority().issue_identity(name, key, now, self.certificate_days))
