"""Reads a round's seed for a replay: from the store, where it is opened with an auditor's key, or from a file."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from sqlalchemy import select

from equipoise.errors import InvalidArgument, VerificationFailed, WrongState
from equipoise.model.rounds import RoundState
from equipoise.records.record import key_id
from equipoise.records.sealed_seeds import SALT_BYTES, SEED_BYTES, commit, open_sealed
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.rounds.state_machine import streams_open
from equipoise_server.rounds.store.rounds import read_round
from equipoise_server.rounds.store.step_records import seed_read
from equipoise_server.storage.operations import committing
from equipoise_server.storage.store import Store, open_store
from equipoise_server.storage.tables.transparency import sealed_seeds
from equipoise_server.transparency.keys import Purpose, all_keys


@dataclass(frozen=True)
class OpenedSeed:
    """A round's seed. `reading`: the root of the record that says that it was read; None where a file had it."""

    seed: bytes = field(repr=False)
    reading: bytes | None


def unsealed(
    store_url: str, guard: Guard, round_id: str, private: X25519PrivateKey, commitment: bytes, now: datetime
) -> OpenedSeed:
    """Put the reading of an ended round's seed on record, and return the seed that the store has for a key.

    As in an auditor's call to a server, the record is written, and the guard knows it, before the seed is opened.
    The record names the key, because no auditor has signed in. A server appends the record to the log later.

    Args:
        store_url: The store.
        guard: The store's guard.
        round_id: The round.
        private: The X25519 key of an auditor to whom seeds are sealed.
        commitment: The seed's commitment on record, 32 bytes.
        now: The time of the record.

    Raises:
        WrongState: the round has not ended, or the store has no seed for the key.
        VerificationFailed: the seed does not open the commitment.
        DataLoss: the store is an older copy.
    """
    public = private.public_key().public_bytes_raw()
    with closing(open_store(store_url)) as store:
        guard.advance(store)
        sealed, reading = _recorded(store, round_id, public, now)
        guard.advance(store)
    return OpenedSeed(open_sealed(private, round_id, sealed, commitment), reading)


def _recorded(store: Store, round_id: str, public: bytes, now: datetime) -> tuple[bytes, bytes]:
    """Return the seed as it was sealed to a key, and the root of the record of its reading, which is written."""
    with committing(store, "seed read") as connection:
        record = read_round(connection, round_id)
        if not (record.state is RoundState.ABORTED or streams_open(record.state, record.release_time, now)):
            raise WrongState("the round has not ended yet")
        key_ids = {key.id for key in all_keys(connection, Purpose.AUDITOR) if key.public == public}
        query = select(sealed_seeds.c.sealed).where(
            sealed_seeds.c.round_id == round_id, sealed_seeds.c.key_id.in_(key_ids)
        )
        sealed: bytes | None = connection.execute(query).scalar_one_or_none()
        if sealed is None:
            problem = "was not sealed to this key, or was destroyed after the time for audits"
            raise WrongState(f"the round's seed {problem}")
        reading = seed_read(connection, round_id, f"replay by the key {key_id(public)}", now)
    return sealed, reading


def seed_in(path: Path, commitment: bytes) -> OpenedSeed:
    """Return the seed in a file of 128 hexadecimal digits: the commitment's salt, then the seed.

    Raises:
        InvalidArgument: the file cannot be read or is malformed; the field is its name.
        VerificationFailed: the round is committed to another seed.
    """
    try:
        plain = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None
    except ValueError:
        plain = b""
    if len(plain) != SALT_BYTES + SEED_BYTES:
        digits = 2 * (SALT_BYTES + SEED_BYTES)
        raise InvalidArgument(
            str(path), f"must hold {digits} hexadecimal digits: the commitment's salt and the seed"
        )
    salt, seed = plain[:SALT_BYTES], plain[SALT_BYTES:]
    if commit(salt, seed) != commitment:
        raise VerificationFailed("the seed is not the one that was committed to")
    return OpenedSeed(seed, None)
