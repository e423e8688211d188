"""Exchanges the keys of the log and of auditors, and exports the log, for the holder of the state directory.

Servers may run meanwhile: they read keys when they sign. A store that was restored from an older copy is refused
with `DataLoss` before anything is changed (`ledger.rollback_guard`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from equipoise.errors import InvalidArgument, WrongState
from equipoise.profile.profile import read_file
from equipoise.records.sealed_seeds import SALT_BYTES, SEED_BYTES, seal_to
from equipoise.records.signed_notes import VerifierKey
from equipoise_server.admin.state_directory import Deployment, open_deployment
from equipoise_server.clock import Clock, system_clock
from equipoise_server.storage.crash_points import CrashPoint, reached
from equipoise_server.storage.operations import committing
from equipoise_server.storage.store import Store
from equipoise_server.transparency import keys, log
from equipoise_server.transparency.keys import PublicKey, Purpose
from equipoise_server.transparency.sequencing import Sequencer
from equipoise_server.transparency.tlog_export import tlog_files


@dataclass(frozen=True)
class KnownKey:
    """A key with its verifier key, by which readers of the log know it; None for an auditor's key."""

    key: PublicKey
    verifier: VerifierKey | None


def list_keys(state: Path, clock: Clock = system_clock) -> list[KnownKey]:
    """Return every key that is or was in force: the log's, then auditors', each the oldest first."""
    with _opened(state, clock) as (deployment, store), store.read() as connection:
        return [
            KnownKey(key, deployment.signer.verifier(key) if purpose is Purpose.LOG else None)
            for purpose in Purpose
            for key in keys.all_keys(connection, purpose)
        ]


def add_log_key(state: Path, clock: Clock = system_clock) -> KnownKey:
    """Makes another key for the log. From then on every key in force signs checkpoints and receipts.

    A crash before the commit leaves a key file that nothing refers to.
    """
    with _changing(state, clock) as (deployment, store):
        key = deployment.signer.make_key(clock())
        reached(CrashPoint.KEY_MADE)
        with committing(store, "key") as connection:
            keys.add(connection, key)
    return KnownKey(key, deployment.signer.verifier(key))


def add_auditor_key(state: Path, public_file: Path, clock: Clock = system_clock) -> KnownKey:
    """Adds an auditor's key, to which the seeds of all rounds that are opened later are sealed, too.

    Args:
        state: the state directory.
        public_file: an X25519 public key in PEM.
        clock: tells the time.

    Raises:
        InvalidArgument: the file is not such a key; the field is its name.
        AlreadyExists: the key is, or was, in force.
    """
    try:
        public = load_pem_public_key(read_file(public_file))
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidArgument(str(public_file), "is not a public key in PEM") from None
    if not isinstance(public, X25519PublicKey):
        raise InvalidArgument(str(public_file), "is not an X25519 key")
    key = PublicKey(Purpose.AUDITOR, public.public_bytes_raw(), clock())
    try:
        # Some points cannot serve as keys. Find out now, and not when the next round is opened.
        seal_to(key.public, "", bytes(SALT_BYTES), bytes(SEED_BYTES))
    except ValueError:
        raise InvalidArgument(
            str(public_file), "is a point of small order, to which nothing can be sealed"
        ) from None
    with _changing(state, clock) as (_, store), committing(store, "key") as connection:
        keys.add(connection, key)
    return KnownKey(key, None)


def retire_key(state: Path, purpose: Purpose, key_id: str, clock: Clock = system_clock) -> None:
    """Retire a key, and remove the private key file of a log key.

    A crash after the commit leaves the file. A second call is refused, but removes the file.

    Args:
        state: The state directory.
        purpose: What the key is for.
        key_id: Which key of that purpose.
        clock: Tells the time.

    Raises:
        NotFound: There is no such key in force.
        WrongState: It is the log's only key.
    """
    with _changing(state, clock) as (deployment, store):
        try:
            with committing(store, "key") as connection:
                keys.retire(connection, purpose, key_id, clock())
            # Sign what the key must still sign, before its file is removed.
            Sequencer(store, deployment.guard, deployment.signer).sequence(clock())
        finally:
            with store.read() as connection:
                deployment.signer.remove_retired(connection)


def export_log(state: Path, directory: Path, clock: Clock = system_clock) -> int:
    """Write the log to a new directory, in C2SP's tlog-tiles format.

    Args:
        state: The state directory.
        directory: Must not exist.
        clock: Tells the time.

    Returns:
        The number of entries.

    Raises:
        InvalidArgument: The directory exists or cannot be made.
        WrongState: The log has no checkpoint yet.
    """
    with _opened(state, clock) as (_, store), store.read() as connection:
        head = log.signed_head(connection)
        if head is None:
            raise WrongState("the log has no checkpoint yet; a server makes one within a second of its start")

        def leaves(first: int, count: int) -> list[bytes]:
            return [entry.leaf for entry in log.entries(connection, first, count)]

        try:
            directory.mkdir(parents=True)
            for name, content in tlog_files(head.size, head.note, log.stored_tiles(connection), leaves):
                path = directory / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        except OSError as error:
            raise InvalidArgument(str(directory), f"cannot be written: {error.strerror}") from None
    return head.size


@contextmanager
def _changing(state: Path, clock: Clock) -> Iterator[tuple[Deployment, Store]]:
    """Opens the store for a change, which a running server, or the next one that starts, appends to the log."""
    with _opened(state, clock) as (deployment, store):
        deployment.guard.advance(store)
        yield deployment, store
        deployment.guard.advance(store)


@contextmanager
def _opened(state: Path, clock: Clock) -> Iterator[tuple[Deployment, Store]]:
    deployment = open_deployment(state, clock())
    store = deployment.open_store()
    try:
        yield deployment, store
    finally:
        store.close()
