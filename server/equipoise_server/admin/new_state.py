"""Makes a state directory: keys, certificates, an empty store and the first two profiles (`state_directory`)."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from sqlalchemy import select

from equipoise.errors import InvalidArgument
from equipoise.model.identities import Role
from equipoise.profile.enrolment import Bundle, begin, default_request_id, install
from equipoise.profile.profile import SEED_KEY
from equipoise_server.admin.state_directory import default_target, log_signer
from equipoise_server.clock import Clock, system_clock
from equipoise_server.config import Config
from equipoise_server.config_file import CONFIG_FILE, make_config, render
from equipoise_server.identity.admission import HOLDER, Admission
from equipoise_server.identity.authority import (
    Authority,
    certificate_to_pem,
    key_to_pem,
    new_key,
)
from equipoise_server.identity.keyfiles import (
    STORAGE_KEY_BYTES,
    make_private_directory,
    write_private,
    write_storage_key,
)
from equipoise_server.ledger.rollback_guard import GUARD_FILE, Guard
from equipoise_server.storage.durable import sync_directory, sync_tree
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.store import Store, open_store
from equipoise_server.storage.tables.identity import identities
from equipoise_server.transparency.identity_records import authority_is_recorded, recorded_login, recorded_registry
from equipoise_server.transparency.keys import PublicKey, Purpose, start_log
from equipoise_server.transparency.signing import private_pem

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


def create_state(
    state: Path,
    host_names: Sequence[str] = LOCAL_NAMES,
    *,
    listen: str = "127.0.0.1:7443",
    store: str = "sqlite:///equipoise.db",
    release_grid_seconds: int = 60,
    clock: Clock = system_clock,
) -> Config:
    """Make a state directory with keys, certificates, an empty store and two profiles.

    Everything is made beside `state` and moved there at the end, so that a crash leaves no half of it; only a
    database elsewhere would have to be made anew.

    Args:
        state: The directory, which must not exist or be empty.
        host_names: Names and IP addresses by which clients reach the server: what its certificate is good for.
        listen: The address on which the server listens.
        store: The store's URL; a relative file lies in the directory.
        release_grid_seconds: The release grid of rounds whose terms name none, in seconds.
        clock: Tells the time.

    Returns:
        The configuration, as it was written.

    Raises:
        InvalidArgument: `state` is there and not empty, or the store belongs to a deployment already.
    """
    state = state.absolute()
    if state.exists() and not (state.is_dir() and not any(state.iterdir())):
        raise InvalidArgument("state", f"{state} exists already and is not an empty directory")
    deployment = secrets.token_hex(8)
    config = make_config(
        deployment=deployment, listen=listen, store=store, release_grid_seconds=release_grid_seconds
    )
    partial = state.with_name(f".{state.name}.{deployment}")
    try:
        make_private_directory(partial)
        _fill(partial, config, host_names, clock())
        if state.exists():
            state.rmdir()
        # Durable before anybody relies on it: without its keys, a store is of no use.
        sync_tree(partial)
        partial.rename(state)
        sync_directory(state.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return config


def _fill(state: Path, config: Config, host_names: Sequence[str], now: datetime) -> None:
    authority = Authority.create(config.deployment, now)
    authority.save(state / "ca")
    keys = state / "keys"
    make_private_directory(keys)
    signer = log_signer(state, config)
    server_key = new_key()
    server_certificate = authority.issue_server(host_names, server_key.public_key(), now)
    write_private(keys / "server.key", key_to_pem(server_key))
    (keys / "server.pem").write_bytes(certificate_to_pem(server_certificate))
    write_storage_key(keys / "storage.key", secrets.token_bytes(STORAGE_KEY_BYTES))
    make_private_directory(config.data_path(state))
    (state / CONFIG_FILE).write_text(render(config), encoding="utf-8")
    store = open_store(config.store_url(state))
    try:
        _check_empty(store)
        seed_key = X25519PrivateKey.generate()
        first = [signer.make_key(now), PublicKey(Purpose.AUDITOR, seed_key.public_key().public_bytes_raw(), now)]
        with store.write() as connection:
            start_log(connection, first, now)
            log_keys = signer.lines(connection)
        guard = Guard(state / GUARD_FILE)
        guard.set(store)
        operations = Operations(store, lambda: now, lambda: guard.advance(store))
        admission = Admission(
            recorded_registry(operations),
            lambda: authority,
            authority_is_recorded,
            recorded_login,
            config.certificate_days,
            config.login_minutes,
            config.logins_per_day,
        )
        target = default_target(config, host_names)
        for role in (Role.OPERATOR, Role.AUDITOR):
            _admit_first(state, admission, role, target, log_keys)
        write_private(state / "profiles" / Role.AUDITOR.value / SEED_KEY, private_pem(seed_key))
    finally:
        store.close()


def _check_empty(store: Store) -> None:
    with store.read() as connection:
        if connection.execute(select(identities.c.name)).first() is not None:
            raise InvalidArgument("store", "belongs to a deployment already; a new one needs an empty database")


def _admit_first(
    state: Path,
    admission: Admission,
    role: Role,
    target: str,
    log_keys: str,
) -> None:
    name = role.value
    make_private_directory(state / "profiles")
    profile = state / "profiles" / name
    signing_request = begin(profile)
    request_id = default_request_id("add", signing_request)
    certificate = admission.admit(name, role, signing_request, request_id, HOLDER)
    install(profile, Bundle(name, target, certificate, admission.authority().pem, log_keys))
