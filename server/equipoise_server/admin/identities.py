"""What only the holder of the state directory can do about who gets in: operators, auditors, the server itself.

Operators admit analysts over the network; nobody admits operators but here. All of it may be done while servers
run: they look identities up on every call. The server's own certificate is read when a server starts.

A store that was restored from an older copy is refused with `DataLoss` before anything is changed (`ledger.guard`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from cryptography import x509

from equipoise.model.identities import Identity, Role
from equipoise.profile.enrolment import Bundle, default_request_id
from equipoise_server.admin.state_directory import Deployment, default_target, open_deployment
from equipoise_server.clock import Clock, system_clock
from equipoise_server.config import load_config
from equipoise_server.identity.authority import (
    Authority,
    certificate_to_pem,
    key_to_pem,
    load_certificate,
    new_key,
    server_names,
)
from equipoise_server.identity.enrolment import requested_key
from equipoise_server.identity.keyfiles import write_private
from equipoise_server.identity.registry import Registry
from equipoise_server.storage.durable import sync_directory, sync_tree
from equipoise_server.storage.idempotency import Request, make_request

HOLDER = "holder"  # of the state directory: whose requests are remembered under this name
EVERYBODY = frozenset(Role)


def add_identity(
    state: Path,
    name: str,
    role: Role,
    signing_request: bytes,
    target: str | None = None,
    clock: Clock = system_clock,
) -> Bundle:
    """Admits an operator, auditor or analyst who sent a request; the same request again gets the first answer.

    Raises `AlreadyExists` for a name that is taken, `InvalidArgument`.
    """
    asked = _request(default_request_id("add", signing_request), "add", name, role.value, signing_request)
    with _registry(state, clock) as (deployment, registry):
        certificate, now = _certified(deployment, name, signing_request, clock)
        return _bundle(deployment, registry, name, registry.add(name, role, certificate, now, asked), target)


def renew_identity(
    state: Path, name: str, signing_request: bytes, target: str | None = None, clock: Clock = system_clock
) -> Bundle:
    """Gives anybody another certificate, also after a revocation. Raises `NotFound`, `InvalidArgument`."""
    asked = _request(default_request_id("renew", signing_request), "renew", name, signing_request)
    with _registry(state, clock) as (deployment, registry):
        certificate, now = _certified(deployment, name, signing_request, clock)
        renewed = registry.renew(name, EVERYBODY, certificate, now, asked)
        return _bundle(deployment, registry, name, renewed, target)


def revoke_identity(state: Path, name: str, clock: Clock = system_clock) -> None:
    """Revokes every certificate of anybody; open calls end within a minute. Raises `NotFound`."""
    with _registry(state, clock) as (_, registry):
        registry.revoke(name, EVERYBODY, clock(), _request(secrets.token_hex(16), "revoke", name))


def list_identities(state: Path, clock: Clock = system_clock) -> list[Identity]:
    """Everybody by name, but analysts who were deleted."""
    found: list[Identity] = []
    token = ""
    with _registry(state, clock) as (_, registry):
        while True:
            page, token = registry.list(EVERYBODY, 0, token)
            found += page
            if not token:
                return found


def renew_server_certificate(
    state: Path, hosts: Sequence[str] = (), clock: Clock = system_clock
) -> x509.Certificate:
    """Gives the server a new key and certificate, for `hosts` or else for the names of the one it has.

    A crash between the two files leaves a key that is not the certificate's: no server starts, and this done again
    repairs it. Raises `InvalidArgument`, also for an authority that has expired.
    """
    state = state.absolute()
    now = clock()
    authority = Authority.load(state / "ca", load_config(state).deployment)
    key_path, certificate_path = state / "keys" / "server.key", state / "keys" / "server.pem"
    names = list(hosts) or server_names(load_certificate(certificate_path))
    key = new_key()
    certificate = authority.issue_server(names, key.public_key(), now)
    prepared = {path: path.with_name(f"{path.name}.new") for path in (key_path, certificate_path)}
    prepared[key_path].unlink(missing_ok=True)
    write_private(prepared[key_path], key_to_pem(key))
    prepared[certificate_path].write_bytes(certificate_to_pem(certificate))
    sync_tree(key_path.parent)
    for path, written in prepared.items():
        written.replace(path)
    sync_directory(key_path.parent)
    return certificate


@contextmanager
def _registry(state: Path, clock: Clock) -> Iterator[tuple[Deployment, Registry]]:
    deployment = open_deployment(state, clock())
    store = deployment.open_store()
    try:
        # Before anything is written: requests are counted, and one more could stand in for one that is missing.
        deployment.guard.advance(store)
        yield deployment, Registry(store)
        # No copy of the store from before a revocation may be accepted, where the request is remembered.
        deployment.guard.advance(store)
    finally:
        store.close()


def _certified(
    deployment: Deployment, name: str, signing_request: bytes, clock: Clock
) -> tuple[x509.Certificate, datetime]:
    now = clock()
    key = requested_key(signing_request)
    return deployment.authority.issue_identity(name, key, now, deployment.config.certificate_days), now


def _bundle(
    deployment: Deployment, registry: Registry, name: str, certificate: bytes, target: str | None
) -> Bundle:
    reached = target or default_target(deployment.config, server_names(deployment.server_certificate))
    with registry.store.read() as connection:
        log_keys = deployment.signer.lines(connection)
    return Bundle(name, reached, certificate, deployment.authority.pem, log_keys)


def _request(request_id: str, method: str, *parts: str | bytes) -> Request:
    return make_request(HOLDER, request_id, f"{method}_identity", *parts)
