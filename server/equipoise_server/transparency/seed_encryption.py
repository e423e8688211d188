"""Custody of a round's seed: drawn, committed before any workload is seen, and encrypted at rest.

Whoever holds the seed can remove the noise. While the round goes on, the store holds it under `storage_key`, which
lies outside the store; and from its opening on, sealed to auditors' keys, which the server cannot open. A copy of
the database alone reveals nothing.
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

SeedSource = Callable[[], bytes]  # 32 fresh bytes a call


def system_seeds() -> bytes:
    """A seed from the operating system."""
    return os.urandom(SEED_BYTES)


@dataclass(frozen=True)
class SealedSeed:
    """`commitment` is public, `ciphertext` is nonce, then salt and seed under AES-GCM.

    `for_auditors`: salt and seed sealed to each auditor's key, by the key's id (`equipoise.records.sealed_seeds`).
    """

    commitment: bytes
    ciphertext: bytes
    for_auditors: Mapping[str, bytes] = field(default_factory=dict)


def seal_seed(round_id: str, seed: bytes, storage_key: bytes, auditors: Mapping[str, bytes]) -> SealedSeed:
    """Commit to a seed and encrypt it. The round's id is authenticated, so that rows cannot be exchanged.

    `auditors`: the public parts, 32 bytes each, of the X25519 keys in force, by their ids.
    """
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes, not {len(seed)}")
    salt = os.urandom(SALT_BYTES)
    nonce = os.urandom(NONCE_BYTES)
    ciphertext = AESGCM(storage_key).encrypt(nonce, salt + seed, seed_binding(round_id))
    sealed = {key_id: seal_to(public, round_id, salt, seed) for key_id, public in auditors.items()}
    return SealedSeed(commit(salt, seed), nonce + ciphertext, sealed)


def open_seed(round_id: str, sealed: SealedSeed, storage_key: bytes) -> bytes:
    """The seed again. Raises `DataLoss` where key, ciphertext, round or commitment do not fit together."""
    nonce, ciphertext = sealed.ciphertext[:NONCE_BYTES], sealed.ciphertext[NONCE_BYTES:]
    try:
        plain = AESGCM(storage_key).decrypt(nonce, ciphertext, seed_binding(round_id))
    except InvalidTag:
        raise DataLoss("the round's seed does not open with this storage key") from None
    salt, seed = plain[:SALT_BYTES], plain[SALT_BYTES:]
    if commit(salt, seed) != sealed.commitment:
        raise DataLoss("the round's seed does not match its commitment")
    return seed
