"""Custody of a round's seed: drawn, committed before any workload is seen, and encrypted at rest.

Whoever holds the seed can remove the noise. The store holds it only under `storage_key`, which lies outside
the store; a copy of the database alone reveals nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from equipoise.errors import DataLoss

SEED_BYTES = 32
SALT_BYTES = 32
NONCE_BYTES = 12

SeedSource = Callable[[], bytes]  # 32 fresh bytes a call


def system_seeds() -> bytes:
    """A seed from the operating system."""
    return os.urandom(SEED_BYTES)


@dataclass(frozen=True)
class SealedSeed:
    """`commitment` is public; `ciphertext` is nonce, then salt and seed under AES-GCM."""

    commitment: bytes
    ciphertext: bytes


def seal_seed(round_id: str, seed: bytes, storage_key: bytes) -> SealedSeed:
    """Commit to a seed and encrypt it. The round's id is authenticated, so that rows cannot be exchanged."""
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes, not {len(seed)}")
    salt = os.urandom(SALT_BYTES)
    nonce = os.urandom(NONCE_BYTES)
    ciphertext = AESGCM(storage_key).encrypt(nonce, salt + seed, _binding(round_id))
    return SealedSeed(commit(salt, seed), nonce + ciphertext)


def open_seed(round_id: str, sealed: SealedSeed, storage_key: bytes) -> bytes:
    """The seed again. Raises `DataLoss` where key, ciphertext, round or commitment do not fit together."""
    nonce, ciphertext = sealed.ciphertext[:NONCE_BYTES], sealed.ciphertext[NONCE_BYTES:]
    try:
        plain = AESGCM(storage_key).decrypt(nonce, ciphertext, _binding(round_id))
    except InvalidTag:
        raise DataLoss("the round's seed does not open with this storage key") from None
    salt, seed = plain[:SALT_BYTES], plain[SALT_BYTES:]
    if commit(salt, seed) != sealed.commitment:
        raise DataLoss("the round's seed does not match its commitment")
    return seed


def commit(salt: bytes, seed: bytes) -> bytes:
    """SHA-256(salt || seed); both have a fixed length, so the concatenation is unambiguous."""
    return hashlib.sha256(salt + seed).digest()


def _binding(round_id: str) -> bytes:
    return b"equipoise seed v1\n" + round_id.encode()
