"""Encryption of a round's seed, to which the server commits before it sees any workload.

Whoever has the seed can remove the noise. While the round goes on, the store has the seed encrypted with
`storage_key`, which is kept outside the store. From the round's opening on, the store also has the seed sealed to
the auditors' keys, which the server cannot open. A copy of the database alone does not reveal the seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from equipoise.errors import DataLoss
from equipoise.records.sealed_seeds import SALT_BYTES, SEED_BYTES, commit, seal_to, seed_binding

NONCE_BYTES = 12

SeedSource = Callable[[], bytes]  # returns 32 new random bytes at each call


def system_seeds() -> bytes:
    """Return a new seed from the operating system's random generator."""
    return os.urandom(SEED_BYTES)


@dataclass(frozen=True)
class SealedSeed:
    """A seed's public commitment and its ciphertexts.

    `ciphertext`: the nonce, followed by salt and seed under AES-GCM. `for_auditors`: salt and seed sealed to each
    auditor's key, by the key's id (`equipoise.records.sealed_seeds`).
    """

    commitment: bytes
    ciphertext: bytes
    for_auditors: Mapping[str, bytes] = field(default_factory=dict)


def seal_seed(round_id: str, seed: bytes, storage_key: bytes, auditors: Mapping[str, bytes]) -> SealedSeed:
    """Commit to a seed and encrypt it. The ciphertext authenticates the round's id, so rows cannot be exchanged.

    Args:
        round_id: the round.
        seed: 32 bytes.
        storage_key: an AES key.
        auditors: the public parts, 32 bytes each, of the X25519 keys in force, by their ids.

    Raises:
        ValueError: the seed has another length.
    """
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes, not {len(seed)}")
    salt = os.urandom(SALT_BYTES)
    nonce = os.urandom(NONCE_BYTES)
    ciphertext = AESGCM(storage_key).encrypt(nonce, salt + seed, seed_binding(round_id))
    sealed = {key_id: seal_to(public, round_id, salt, seed) for key_id, public in auditors.items()}
    return SealedSeed(commit(salt, seed), nonce + ciphertext, sealed)


def open_seed(round_id: str, sealed: SealedSeed, storage_key: bytes) -> bytes:
    """Decrypt a seed. Raises `DataLoss` where key, ciphertext, round or commitment do not match.

    Args:
        round_id: the round to which the ciphertext is bound.
        sealed: the ciphertext, and what the seed was committed to.
        storage_key: the server's, 32 bytes.
    """
    nonce, ciphertext = sealed.ciphertext[:NONCE_BYTES], sealed.ciphertext[NONCE_BYTES:]
    try:
        plain = AESGCM(storage_key).decrypt(nonce, ciphertext, seed_binding(round_id))
    except InvalidTag:
        raise DataLoss("the round's seed does not open with this storage key") from None
    salt, seed = plain[:SALT_BYTES], plain[SALT_BYTES:]
    if commit(salt, seed) != sealed.commitment:
        raise DataLoss("the round's seed does not match its commitment")
    return seed
