"""Reads operators' requests about who gets in, and has them carried out under the operator's name."""

from __future__ import annotations

from equipoise.errors import WrongState
from equipoise.model.identities import Caller, Role
from equipoise.v1 import operator_pb2
from equipoise_server.identity.admission import Admission
from equipoise_server.identity.login_tokens import Account, check_subject


def added(
    admission: Admission, log_keys: str, request: operator_pb2.AddAnalystRequest, caller: Caller
) -> operator_pb2.AddAnalystResponse:
    """Admit an analyst: sign the key of its certificate request under the name that the operator gives.

    Args:
        admission: What signs.
        log_keys: The log's public keys in force.
        request: The request.
        caller: The operator.

    Raises:
        EquipoiseError: As `Admission.admit`.
    """
    pem = admission.admit(request.name, Role.ANALYST, request.signing_request, request.request_id, _by(caller))
    return operator_pb2.AddAnalystResponse(certificate=pem, authority=admission.authority().pem, log_keys=log_keys)


def renewed(
    admission: Admission, log_keys: str, request: operator_pb2.RenewAnalystRequest, caller: Caller
) -> operator_pb2.RenewAnalystResponse:
    """Sign a further certificate for an analyst. Earlier certificates stay valid.

    Args:
        admission: What signs.
        log_keys: The log's public keys in force.
        request: The request.
        caller: The operator.

    Raises:
        EquipoiseError: As `Admission.renew`.
    """
    roles = {Role.ANALYST}
    pem = admission.renew(request.name, roles, request.signing_request, request.request_id, _by(caller))
    return operator_pb2.RenewAnalystResponse(
        certificate=pem, authority=admission.authority().pem, log_keys=log_keys
    )


def login_allowed(
    admission: Admission, issuer: str, request: operator_pb2.AllowLoginRequest, caller: Caller
) -> operator_pb2.AllowLoginResponse:
    """Let an analyst log in with an account of the identity provider.

    Args:
        admission: What records it.
        issuer: The provider's identifier; empty where nobody logs in.
        request: The request.
        caller: The operator.

    Raises:
        WrongState: There is no provider.
        EquipoiseError: As `Admission.allow_login`.
    """
    account = Account(issuer, check_subject(request.subject))
    if not issuer:
        raise WrongState("this server has no identity provider: login_issuer is not set in its configuration")
    admission.allow_login(request.name, Role.ANALYST, account, request.request_id, _by(caller))
    return operator_pb2.AllowLoginResponse()


def _by(caller: Caller) -> str:
    return f"operator/{caller.name}"
