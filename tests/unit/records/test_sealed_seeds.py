"""A seed as auditors get it: it opens with its key, for its round, under its commitment, and in no other way."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from equipoise.errors import VerificationFailed
from equipoise.records.sealed_seeds import commit, open_committed, open_sealed, seal_to

SALT, SEED = bytes(32), bytes(range(32))


def test_a_seed_opens_with_its_key_for_its_round_under_its_commitment_and_no_other() -> None:
    private = X25519PrivateKey.generate()
    sealed = seal_to(private.public_key().public_bytes_raw(), "round-1", SALT, SEED)
    commitment = commit(SALT, SEED)
    assert open_committed(private, "round-1", sealed, commitment) == SALT + SEED
    assert open_sealed(private, "round-1", sealed, commitment) == SEED
    for other in ((X25519PrivateKey.generate(), "round-1", sealed), (private, "round-2", sealed)):
        with pytest.raises(VerificationFailed, match="does not open with this key"):
            open_sealed(*other, commitment)
    for damaged in (b"", sealed[:-1], sealed[:-1] + bytes([sealed[-1] ^ 1])):
        with pytest.raises(VerificationFailed, match="does not open with this key"):
            open_sealed(private, "round-1", damaged, commitment)
    with pytest.raises(VerificationFailed, match="not the one that was committed to"):
        open_sealed(private, "round-1", sealed, commit(SALT, bytes(32)))


@pytest.mark.parametrize(("salt", "seed"), [(SALT[:-1], SEED), (SALT, SEED[:-1]), (SALT + SEED[:1], SEED[1:])])
def test_a_commitment_takes_salt_and_seed_of_their_lengths_only(salt: bytes, seed: bytes) -> None:
    """Else two pairs could have one commitment."""
    with pytest.raises(ValueError, match="32 and 32 bytes"):
        commit(salt, seed)


def test_a_seed_sealed_in_another_length_is_not_taken() -> None:
    private = X25519PrivateKey.generate()
    sealed = seal_to(private.public_key().public_bytes_raw(), "round-1", SALT, SEED + b"more")
    with pytest.raises(VerificationFailed, match="not the one that was committed to"):
        open_committed(private, "round-1", sealed, commit(SALT, SEED))
