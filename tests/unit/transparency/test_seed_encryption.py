"""Seeds: committed, encrypted, bound to their round."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from equipoise.errors import DataLoss
from equipoise.records.sealed_seeds import commit
from equipoise_server.transparency.seed_encryption import open_seed, seal_seed, system_seeds

KEY = bytes(range(32))
SEED = bytes(reversed(range(32)))


def test_a_seed_comes_back() -> None:
    assert open_seed("r", seal_seed("r", SEED, KEY, {}), KEY) == SEED


def test_the_store_does_not_show_the_seed() -> None:
    sealed = seal_seed("r", SEED, KEY, {})
    assert SEED not in sealed.ciphertext
    assert sealed.commitment != hashlib.sha256(SEED).digest()


def test_the_same_seed_never_looks_the_same() -> None:
    first, second = seal_seed("r", SEED, KEY, {}), seal_seed("r", SEED, KEY, {})
    assert first.commitment != second.commitment
    assert first.ciphertext != second.ciphertext


def test_the_commitment_is_of_salt_and_seed() -> None:
    assert commit(b"s" * 32, SEED) == hashlib.sha256(b"s" * 32 + SEED).digest()


def test_another_key_round_or_commitment_is_refused() -> None:
    sealed = seal_seed("r", SEED, KEY, {})
    damaged = replace(sealed, ciphertext=sealed.ciphertext[:-1] + bytes([sealed.ciphertext[-1] ^ 1]))
    with pytest.raises(DataLoss):
        open_seed("r", sealed, bytes(32))
    with pytest.raises(DataLoss):
        open_seed("another", sealed, KEY)
    with pytest.raises(DataLoss):
        open_seed("r", damaged, KEY)
    with pytest.raises(DataLoss, match="commitment"):
        open_seed("r", replace(sealed, commitment=bytes(32)), KEY)


def test_a_seed_has_32_bytes() -> None:
    assert len({system_seeds(), system_seeds()}) == 2
    assert len(system_seeds()) == 32
    with pytest.raises(ValueError, match="32 bytes"):
        seal_seed("r", b"short", KEY, {})
