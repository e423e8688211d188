"""A round's seed as auditors get it: under its commitment, and sealed to their keys.

Sealing is HPKE in its base mode (RFC 9180) with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and ChaCha20Poly1305. So a
server seals with public keys only, and cannot open afterwards what it has sealed.

Whoever opens a seed can remove the noise from the round's answers.
"""

from __future__ import annotations

import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from equipoise.errors import VerificationFailed

SEED_BYTES = 32
SALT_BYTES = 32
NONCE_BYTES = 32  # of an auditor

_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


def commit(salt: bytes, seed: bytes) -> bytes:
    """Return SHA-256(salt || seed); both have 32 bytes, so the concatenation is unambiguous.

    Args:
        salt: 32 bytes.
        seed: 32 bytes.

    Raises:
        ValueError: one has another length.
    """
    if len(salt) != SALT_BYTES or len(seed) != SEED_BYTES:
        raise ValueError(f"salt and seed have {SALT_BYTES} and {SEED_BYTES} bytes, not {len(salt)} and {len(seed)}")
    return hashlib.sha256(salt + seed).digest()


def fingerprint(seed: bytes) -> bytes:
    """Returns what tells equal seeds apart from others and says nothing else of a seed, 32 bytes.

    HKDF-SHA256 of the seed, under a name that noise is not drawn under (`docs/formats.md`). So, by the assumption
    that makes the noise good, HMAC-SHA256 being a pseudorandom function, whoever knows the fingerprint of a seed
    that was drawn at random cannot feasibly tell its noise from other noise.
    """
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes, not {len(seed)}")
    return HKDF(SHA256(), SEED_BYTES, salt=bytes(NONCE_BYTES), info=b"equipoise seed fingerprint v1\n").derive(seed)


def seed_binding(round_id: str) -> bytes:
    """Returns what is authenticated together with a seed, so that no round's passes for another's."""
    return b"equipoise seed v1\n" + round_id.encode()


def seal_to(public: bytes, round_id: str, salt: bytes, seed: bytes) -> bytes:
    """Seals a round's seed to an auditor.

    Args:
        public: the auditor's X25519 key, 32 bytes.
        round_id: the round, to which the ciphertext is bound.
        salt: the salt of the seed's commitment, 32 bytes.
        seed: the seed, 32 bytes.

    Returns:
        The encapsulated key, 32 bytes, and the ciphertext; different ones each time.
    """
    return _SUITE.encrypt(salt + seed, X25519PublicKey.from_public_bytes(public), seed_binding(round_id))


def open_sealed(private: X25519PrivateKey, round_id: str, sealed: bytes, commitment: bytes) -> bytes:
    """Opens a sealed seed.

    Args:
        private: the auditor's key.
        round_id: the round whose seed it is.
        sealed: what `seal_to` returned.
        commitment: the seed's commitment on record, 32 bytes.

    Returns:
        The seed, 32 bytes.

    Raises:
        VerificationFailed: it does not open with this key for this round, or another seed was committed to.
    """
    return open_committed(private, round_id, sealed, commitment)[SALT_BYTES:]


def open_committed(private: X25519PrivateKey, round_id: str, sealed: bytes, commitment: bytes) -> bytes:
    """Opens a sealed seed with its salt, which together show anybody that this was the seed.

    Args:
        private: the auditor's key.
        round_id: the round whose seed it is.
        sealed: what `seal_to` returned.
        commitment: the seed's commitment on record, 32 bytes.

    Returns:
        The salt, 32 bytes, and the seed, 32 bytes.

    Raises:
        VerificationFailed: it does not open with this key for this round, or another seed was committed to.
    """
    try:
        plain = _SUITE.decrypt(sealed, private, seed_binding(round_id))
    except (InvalidTag, ValueError):
        raise VerificationFailed("the round's sealed seed does not open with this key") from None
    salt, seed = plain[:SALT_BYTES], plain[SALT_BYTES:]
    if len(seed) != SEED_BYTES or commit(salt, seed) != commitment:
        raise VerificationFailed("the round's seed is not the one that was committed to")
    return plain
