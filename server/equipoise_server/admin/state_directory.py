"""The state directory: all that one deployment keeps, apart from the private tables' own places.

    equipoise.toml      the configuration
    ca/                 the authority's certificate and key (0600); while it is exchanged the old certificate, too,
                        and until when that is honoured, if it was stated
    keys/               the server's certificate and key, the key that encrypts stored seeds, and those that sign
                        the log, log-ID.key (0600)
    equipoise.db        the store
    guard               how far the budget journal and the log had come: an older copy of the store is refused
    guard.digests       which entries the guard has seen: a copy that went another way is told from an older one
    data/               the private tables, unless configured elsewhere
    profiles/           the first operator's and the first auditor's way in, one directory each; the auditor's has
                        the key that seeds are sealed to

Trusted: whoever reads `ca/` or `keys/` can be anyone, remove the noise from results or sign another log; whoever
writes `equipoise.db` can raise budgets; whoever writes `guard` can hide that an older store was restored.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509

from equipoise.errors import InvalidArgument
from equipoise.profile.certificates import issued_by
from equipoise.records.evidence import log_origin
from equipoise_server.admin.file_modes import check_modes
from equipoise_server.clock import Clock
from equipoise_server.config import Config
from equipoise_server.config_file import CONFIG_FILE, load_config, make_config
from equipoise_server.identity.admission import Admission
from equipoise_server.identity.authority import CERTIFICATE_FILE, Authority, key_to_pem
from equipoise_server.identity.key_pairs import read_pair
from equipoise_server.identity.keyfiles import (
    read_storage_key,
)
from equipoise_server.ledger.rollback_guard import GUARD_FILE, Guard
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.store import Store, hold, hold_exclusively, open_store
from equipoise_server.transparency.identity_records import authority_is_recorded, recorded_login, recorded_registry
from equipoise_server.transparency.signing import Signer

SOON = timedelta(days=30)
RENEW = "equipoise-server certificate renew"


@dataclass(frozen=True)
class Deployment:
    """A deployment: the state directory's files, read and checked at one time. The store is opened separately."""

    state: Path
    time: datetime
    config: Config
    authority: Authority
    server_certificate: x509.Certificate
    server_key_pem: bytes
    storage_key: bytes

    @property
    def certificate_ends(self) -> dict[str, datetime]:
        """The times at which the server's certificate and the authority's expire."""
        return {
            "server": self.server_certificate.not_valid_after_utc,
            "authority": self.authority.certificate.not_valid_after_utc,
        }

    def expiring(self, now: datetime) -> list[str]:
        """Return a line for each certificate that has expired or expires soon."""
        remedies = {"server": f"renew it with: {RENEW}", "authority": "see the runbook"}
        return [
            f"{'expires' if now <= end else 'expired'} on {end:%Y-%m-%d}: "
            f"the {name}'s certificate ({remedies[name]})"
            for name, end in self.certificate_ends.items()
            if end - now < SOON
        ]

    @property
    def guard(self) -> Guard:
        """The rollback guard beside the store."""
        return Guard(self.state / GUARD_FILE)

    @property
    def signer(self) -> Signer:
        """The log's private keys."""
        return log_signer(self.state, self.config)

    def admission(self, store: Store, clock: Clock) -> Admission:
        """Return the admission of identities on this deployment's store."""
        operations = Operations(store, clock, lambda: self.guard.advance(store))
        return Admission(
            recorded_registry(operations),
            lambda: self.authority,
            authority_is_recorded,
            recorded_login,
            self.config.certificate_days,
            self.config.login_minutes,
            self.config.logins_per_day,
        )

    def open_store(self) -> Store:
        """Return the store, migrated if need be."""
        return open_store(self.config.store_url(self.state))

    def hold(self) -> AbstractContextManager[None]:
        """Holds the store for a server. Raises `InvalidArgument` if another one has it and it cannot be shared."""
        return hold(self.config.store_url(self.state))

    def hold_exclusively(self) -> AbstractContextManager[None]:
        """Holds the store alone, so that no server can start. Raises `InvalidArgument` if a server holds it."""
        return hold_exclusively(self.config.store_url(self.state))


def open_deployment(state: Path, now: datetime, listen: str | None = None) -> Deployment:
    """Read and check a state directory.

    Args:
        state: The directory.
        now: The time at which certificates are looked at.
        listen: Takes the place of the configured address, for one of several servers of one directory.

    Raises:
        InvalidArgument: Naming the file and what is wrong with it.
    """
    state = state.absolute()
    config = load_config(state)
    if listen is not None:
        config = make_config(**{**config.model_dump(), "listen": listen})
    check_modes(state, config.database_file(state))
    authority = Authority.load(state / "ca", config.deployment)
    certificate_path, key_path = state / "keys" / "server.pem", state / "keys" / "server.key"
    mismatch = f"is not the key of the server's certificate; {RENEW} makes both anew"
    (certificate, *_), key = read_pair(certificate_path, key_path, mismatch)
    # An exchange of the authority that was cut off leaves a certificate of the one before.
    issuers = [each for each in (authority.certificate, authority.predecessor) if each is not None]
    if not any(issued_by(certificate, each) for each in issuers):
        raise InvalidArgument(str(certificate_path), "was not issued by this deployment's authority")
    _check_time(certificate_path, certificate, now, RENEW)
    _check_time(state / "ca" / CERTIFICATE_FILE, authority.certificate, now, "see the runbook")
    data = config.data_path(state)
    if not data.is_dir():
        raise InvalidArgument(f"{state / CONFIG_FILE}: data_directory", f"{data} is not a directory")
    return Deployment(
        state=state,
        time=now,
        config=config,
        authority=authority,
        server_certificate=certificate,
        server_key_pem=key_to_pem(key),
        storage_key=read_storage_key(state / "keys" / "storage.key"),
    )


def _check_time(path: Path, certificate: x509.Certificate, now: datetime, remedy: str) -> None:
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now > last:
        raise InvalidArgument(str(path), f"expired on {last:%Y-%m-%d}; {remedy}")
    if now < first:
        raise InvalidArgument(str(path), f"is not valid before {first:%Y-%m-%d %H:%M} UTC; is the clock right?")


def default_target(config: Config, host_names: Sequence[str]) -> str:
    """Return where clients are told to go: where the server listens, or its first name if it listens everywhere."""
    return reached_at(config.listen, host_names)


def reached_at(listen: str, host_names: Sequence[str]) -> str:
    """Return the address at which something that listens is reached.

    Args:
        listen: Where it listens, HOST:PORT.
        host_names: The server's names, of which the first is taken where it listens at every address.
    """
    host, _, port = listen.rpartition(":")
    return f"{host_names[0]}:{port}" if host in ("0.0.0.0", "[::]", "*") else listen


def log_signer(state: Path, config: Config) -> Signer:
    """Return the log's private keys in a state directory."""
    return Signer(state / "keys", log_origin(config.deployment))
