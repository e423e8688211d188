"""A round's seed, as an auditor comes by it: sealed in the store and opened with a key, or from a file."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from sqlalchemy import select

from equipoise.errors import InvalidArgument, VerificationFailed, WrongState
from equipoise.records.sealed_seeds import SALT_BYTES, SEED_BYTES, commit, open_sealed
from equipoise_server.storage.store import ReadOnlyStore
from equipoise_server.storage.tables.transparency import sealed_seeds
from equipoise_server.transparency.keys import Purpose, all_keys


def unsealed(store: ReadOnlyStore, round_id: str, private: X25519PrivateKey, commitment: bytes) -> bytes:
    """The seed that the store holds for this key. Raises `WrongState` where it holds none; `VerificationFailed`.

    Unlike an auditor's call to a server, this leaves no record: who has both the store and the key needs no server.
    """
    public = private.public_key().public_bytes_raw()
    with store.read() as connection:
        key_ids = {key.id for key in all_keys(connection, Purpose.AUDITOR) if key.public == public}
        query = select(sealed_seeds.c.sealed).where(
            sealed_seeds.c.round_id == round_id, sealed_seeds.c.key_id.in_(key_ids)
        )
        sealed = connection.execute(query).scalar_one_or_none()
    if sealed is None:
        raise WrongState("the round's seed was not sealed to this key, or was destroyed after the time for audits")
    return open_sealed(private, round_id, sealed, commitment)


def seed_in(path: Path, commitment: bytes) -> bytes:
    """The seed of a file of 128 hexadecimal digits, the commitment's salt and the seed.

    Raises `InvalidArgument` naming the file, `VerificationFailed` where another seed was committed to.
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
    return seed
