"""What only the holder of the state directory can do about who gets in: operators, auditors, the server itself.

Operators admit analysts over the network; nobody admits operators but here. All of it may be done while servers
run: they look identities up on every call. The server's own certificate is read when a server starts.

A store that was restored from an older copy is refused with `DataLoss` before anything is changed (`ledger.guard`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509

from equipoise.errors import InvalidArgument
from equipoise.model.identities import Identity, Role
from equipoise.profile.enrolment import Bundle, default_request_id
from equipoise.profile.login_file import LoginFile
from equipoise_server.admin.state_directory import (
    Deployment,
    default_target,
    open_deployment,
    reached_at,
)
from equipoise_server.clock import Clock, system_clock
from equipoise_server.config_file import CONFIG_FILE, load_config
from equipoise_server.identity.admission import HOLDER, Admission
from equipoise_server.identity.authority import (
    Authority,
    certificate_to_pem,
    key_to_pem,
    new_key,
    server_names,
)
from equipoise_server.identity.key_pairs import load_certificates, replace_pair
from equipoise_server.identity.login_tokens import Account, check_subject

EVERYBODY = frozenset(Role)


def add_identity(
    state: Path,
    name: str,
    role: Role,
    signing_request: bytes,
    target: str | None = None,
    clock: Clock = system_clock,
) -> Bundle:
    """Admit an operator, auditor or analyst who sent a signing request. A repeated request gets the first answer.

    Args:
        state: The state directory.
        name: Of the new identity; it stays taken for ever.
        role: What it may do.
        signing_request: In PEM.
        target: The address that its bundle names; None for the configured one.
        clock: Tells the time.

    Returns:
        What the identity needs beside its key.

    Raises:
        AlreadyExists: The name is taken.
        InvalidArgument: The directory, the name or the signing request cannot be taken.
    """
    request_id = default_request_id("add", signing_request)
    with _admission(state, clock) as (deployment, admission):
        certificate = admission.admit(name, role, signing_request, request_id, HOLDER)
        return _bundle(deployment, admission, name, certificate, target)


def renew_identity(
    state: Path, name: str, signing_request: bytes, target: str | None = None, clock: Clock = system_clock
) -> Bundle:
    """Issues another certificate to any identity, also after a revocation. Raises `NotFound`, `InvalidArgument`.

    Args:
        state: the state directory.
        name: the identity's.
        signing_request: the file's exact bytes.
        target: host and port at which the owner reaches the server; None: the configured ones.
    """
    request_id = default_request_id("renew", signing_request)
    with _admission(state, clock) as (deployment, admission):
        certificate = admission.renew(name, EVERYBODY, signing_request, request_id, HOLDER)
        return _bundle(deployment, admission, name, certificate, target)


def allow_login(state: Path, name: str, role: Role, subject: str, clock: Clock = system_clock) -> None:
    """Let an identity log in with an account of the configured identity provider, and admit it if it is new.

    Args:
        state: The state directory.
        name: Of the identity.
        role: Its role.
        subject: Of the account at the provider.
        clock: Tells the time.

    Raises:
        AlreadyExists: The account logs in somebody else.
        InvalidArgument: The directory, the name or the subject cannot be taken, or there is no provider.
        NotFound: The name was deleted, or has another role.
    """
    with _admission(state, clock) as (deployment, admission):
        _check_provider(deployment)
        account = Account(deployment.config.login_issuer, check_subject(subject))
        admission.allow_login(name, role, account, secrets.token_hex(16), HOLDER)


def login_file(state: Path, door: str | None, target: str | None, clock: Clock = system_clock) -> LoginFile:
    """Return what people need to log in, to be published.

    Args:
        state: The state directory.
        door: The address at which they log in; None for the configured one.
        target: The address of the server; None for the configured one.
        clock: Tells the time.

    Raises:
        InvalidArgument: The directory cannot be read, or nobody logs in there.
    """
    with _admission(state, clock) as (deployment, admission):
        _check_provider(deployment)
        config, hosts = deployment.config, server_names(deployment.server_certificate)
        if not (door or config.login_listen):
            raise InvalidArgument(
                f"{deployment.state / CONFIG_FILE}: login_listen", "is empty: nobody logs in here"
            )
        with admission.registry.operations.store.read() as connection:
            log_keys = deployment.signer.lines(connection)
        return LoginFile(
            door=door or reached_at(config.login_listen, hosts),
            target=target or default_target(config, hosts),
            issuer=config.login_issuer,
            client=config.login_client,
            authority=deployment.authority.pem.decode(),
            log_keys=log_keys,
        )


def _check_provider(deployment: Deployment) -> None:
    if not deployment.config.login_issuer:
        raise InvalidArgument(
            f"{deployment.state / CONFIG_FILE}: login_issuer", "is empty: this deployment has no identity provider"
        )


def revoke_identity(state: Path, name: str, clock: Clock = system_clock) -> None:
    """Revokes every certificate of an identity, whose open calls end within a minute. Raises `NotFound`."""
    with _admission(state, clock) as (_, admission):
        admission.revoke(name, EVERYBODY, secrets.token_hex(16), HOLDER)


def list_identities(state: Path, clock: Clock = system_clock) -> list[Identity]:
    """Return all identities by name, except deleted analysts."""
    identities: list[Identity] = []
    token = ""
    with _admission(state, clock) as (_, admission):
        while True:
            page, token = admission.registry.list(EVERYBODY, 0, token)
            identities += page
            if not token:
                return identities


def renew_server_certificate(
    state: Path, hosts: Sequence[str] = (), clock: Clock = system_clock
) -> x509.Certificate:
    """Give the server a new key and certificate. A server that runs takes them up by itself.

    After a crash there is the old pair or the new one.

    Args:
        state: The state directory.
        hosts: Host names and IP addresses of the server; none for those of the certificate it has.
        clock: Tells the time.

    Raises:
        InvalidArgument: A file cannot be read, a host is none, or the authority has expired.
    """
    state = state.absolute()
    now = clock()
    authority = Authority.load(state / "ca", load_config(state).deployment)
    key_path, certificate_path = state / "keys" / "server.key", state / "keys" / "server.pem"
    names = list(hosts) or server_names(load_certificates(certificate_path)[0])
    key = new_key()
    certificate = authority.issue_server(names, key.public_key(), now)
    replace_pair(certificate_path, certificate_to_pem(certificate), key_path, key_to_pem(key))
    return certificate


@contextmanager
def _admission(state: Path, clock: Clock) -> Iterator[tuple[Deployment, Admission]]:
    deployment = open_deployment(state, clock())
    store = deployment.open_store()
    try:
        # Check the store before anything is written: the guard counts requests, and a new one could hide a loss.
        deployment.guard.advance(store)
        yield deployment, deployment.admission(store, clock)
    finally:
        store.close()


def _bundle(
    deployment: Deployment, admission: Admission, name: str, certificate: bytes, target: str | None
) -> Bundle:
    reached = target or default_target(deployment.config, server_names(deployment.server_certificate))
    with admission.registry.operations.store.read() as connection:
        log_keys = deployment.signer.lines(connection)
    return Bundle(name, reached, certificate, deployment.authority.pem, log_keys)
