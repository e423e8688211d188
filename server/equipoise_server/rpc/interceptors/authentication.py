"""Finds the caller of each call by the certificate, and checks that the caller's role may call the method.

Every call is checked, because certificates expire and are revoked while connections stay open.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import lru_cache
from math import inf

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from equipoise.errors import NotAuthenticated
from equipoise.model.identities import Caller
from equipoise.profile.certificates import read_certificate
from equipoise_server.clock import Clock
from equipoise_server.identity.credential import Credential, credential_of
from equipoise_server.identity.names import certified_name
from equipoise_server.identity.policy import authorise
from equipoise_server.identity.registry import Registry
from equipoise_server.rpc.interceptors.call_rates import CallRates
from equipoise_server.rpc.interceptors.interceptor import Call, Context, Guard
from equipoise_server.rpc.interceptors.refused_certificates import Refusals
from equipoise_server.rpc.interceptors.revocation_watch import OpenCalls
from equipoise_server.rpc.threads import SharedThreads

ACCEPTED_SECONDS = 5.0  # for which a certificate that was accepted is counted before it is looked up again

_CALLER: ContextVar[Caller] = ContextVar("caller")


def authentication(
    registry: Registry,
    deployment: str,
    clock: Clock,
    threads: SharedThreads,
    refusals: Refusals,
    rates: CallRates,
    ticks: Callable[[], float] = time.monotonic,
) -> Guard:
    """Return the guard that finds the caller, and ends the call when the certificate expires or is revoked.

    TLS has checked before that our authority issued the certificate. A certificate that was accepted a moment ago
    counts against its holder's rates before it is looked up, so a caller beyond them costs no look-up. Any other
    one is looked up first: if it was revoked, its calls must not count for its former holder. Look-ups take turns
    by name in `threads`: a flood of calls delays only calls under the same name.

    Args:
        registry: Knows the identities and their certificates.
        deployment: The deployment's name, which a certificate must have.
        clock: Tells the time.
        threads: The threads that look names up.
        refusals: Counts the refused calls of each certificate.
        rates: Count the calls of each caller.
        ticks: In seconds, from any start.
    """
    open_calls = OpenCalls(registry, clock)
    accepted: dict[str, float] = {}  # when a certificate was accepted last, by serial number

    async def find_caller(name: str, credential: Credential, method: str) -> Caller:
        counted = ticks() - accepted.get(credential.id, -inf) <= ACCEPTED_SECONDS
        if counted:
            rates.take(name, method)
        try:
            caller = await threads.run(name, registry.caller, name, credential)
        except NotAuthenticated:
            accepted.pop(credential.id, None)
            raise
        accepted[credential.id] = ticks()
        if not counted:
            rates.take(name, method)
        return caller

    @asynccontextmanager
    async def authenticate(call: Call) -> AsyncIterator[None]:
        certificate, credential = _parsed(_peer_certificate(call.context))
        with refusals.counted(credential):
            name = name_in_force(certificate, deployment, clock)
            # gRPC runs each call in its own task, so only this call sees the variable.
            _CALLER.set(await find_caller(name, credential, call.method))
        async with open_calls.while_in_force(credential):
            yield

    return authenticate


@asynccontextmanager
async def check_role(call: Call) -> AsyncIterator[None]:
    """Let a call through only if the policy's row of its method names the caller's role.

    The check comes before the request is parsed. Raises `PermissionDenied`, `NotAuthenticated`.
    """
    authorise(current_caller().role, call.method)
    yield


def current_caller() -> Caller:
    """Return the caller of the current call. Raises `NotAuthenticated` outside the guard."""
    caller = _CALLER.get(None)
    if caller is None:
        raise NotAuthenticated("the call has no client certificate")
    return caller


def name_in_force(certificate: x509.Certificate, deployment: str, clock: Clock) -> str:
    """Return the name of a client certificate's holder.

    Raises:
        NotAuthenticated: The certificate is not valid now, is not made for clients, or names another deployment.
    """
    if not certificate.not_valid_before_utc <= clock() <= certificate.not_valid_after_utc:
        raise NotAuthenticated("the certificate has expired or is not valid yet")
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        raise NotAuthenticated("the certificate is not made for clients") from None
    if ExtendedKeyUsageOID.CLIENT_AUTH not in usages:
        raise NotAuthenticated("the certificate is not made for clients")
    return certified_name(certificate, deployment)


def _peer_certificate(context: Context) -> bytes:
    presented = list(context.auth_context().get("x509_pem_cert", ()))
    if len(presented) != 1:
        raise NotAuthenticated("the connection has no client certificate")
    return presented[0]


@lru_cache(maxsize=1024)
def _parsed(pem: bytes) -> tuple[x509.Certificate, Credential]:
    try:
        certificate = read_certificate(pem)
        return certificate, credential_of(certificate)
    except ValueError:
        raise NotAuthenticated("the connection's certificate cannot be read") from None
