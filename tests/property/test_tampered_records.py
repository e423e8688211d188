"""No bit of a note, an envelope, a proof or a canonical value can change without being found."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from harness.consistency import consistency_path
from harness.verifying import flipped
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import VerificationFailed
from equipoise.records.canonical import canonical_json, from_base64, from_hex, parse_canonical_json, to_base64
from equipoise.records.envelopes import open_envelope, sign
from equipoise.records.merkle import (
    inclusion_path,
    leaf_hash,
    root_of,
    verify_consistency,
    verify_inclusion,
)
from equipoise.records.signed_notes import Checkpoint, SigningKey, VerifierKey, open_checkpoint, sign_note

KIND = "application/vnd.equipoise.receipt+json"
KEYS = [
    SigningKey("equipoise/north", Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)) for number in (1, 2)
]
TRUSTED, TOLD = [KEYS[0].verifier], [KEYS[1].verifier]
HASHES = [leaf_hash(b"leaf %d" % number) for number in range(70)]


def refuse_every_flip(data: bytes, read: Callable[[bytes], object]) -> None:
    """Flips each bit in turn; `read` accepts the data as it is."""
    read(data)
    for bit in range(8 * len(data)):
        with pytest.raises(VerificationFailed):
            read(flipped(data, bit))


def test_every_bit_of_a_checkpoint() -> None:
    note = sign_note(Checkpoint("equipoise/north", 70, root_of(HASHES)).to_text(), KEYS)
    refuse_every_flip(note, lambda data: open_checkpoint(data, TRUSTED, TOLD))


def test_every_bit_of_an_envelope() -> None:
    envelope = sign(KIND, b'{"analyst":"ann","round":"r-1"}', KEYS)
    refuse_every_flip(envelope, lambda data: open_envelope(data, KIND, TRUSTED, TOLD))


def test_every_bit_of_a_verifier_key() -> None:
    def read(data: bytes) -> None:
        if VerifierKey.from_text(data.decode("utf-8", "surrogateescape")) != TRUSTED[0]:
            raise VerificationFailed("another key")

    refuse_every_flip(TRUSTED[0].to_text().encode(), read)


@given(size=st.integers(1, 70), data=st.data())
def test_bits_of_a_proof_of_inclusion(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    path, root = inclusion_path(HASHES[:size], index), root_of(HASHES[:size])
    whole = b"".join([HASHES[index], root, *path])

    def read(changed: bytes) -> None:
        hashed, given_root, *given_path = (changed[at : at + 32] for at in range(0, len(changed), 32))
        verify_inclusion(hashed, index, size, given_path, given_root)

    read(whole)
    with pytest.raises(VerificationFailed):
        read(flipped(whole, data.draw(st.integers(0, 8 * len(whole) - 1))))
    other = index ^ 1 << data.draw(st.integers(0, 63))
    with pytest.raises(VerificationFailed):
        verify_inclusion(HASHES[index], other, size, path, root)
    for wrong in (path[:-1], [*path, root], [*path[1:], root]):
        if wrong != path:
            with pytest.raises(VerificationFailed):
                verify_inclusion(HASHES[index], index, size, wrong, root)


@given(new=st.integers(1, 70), data=st.data())
def test_bits_of_a_proof_of_consistency(new: int, data: st.DataObject) -> None:
    old = data.draw(st.integers(1, new))
    path = consistency_path(HASHES[:new], old)
    whole = b"".join([root_of(HASHES[:old]), root_of(HASHES[:new]), *path])

    def read(changed: bytes) -> None:
        old_root, new_root, *given_path = (changed[at : at + 32] for at in range(0, len(changed), 32))
        verify_consistency(old, old_root, new, new_root, given_path)

    read(whole)
    with pytest.raises(VerificationFailed):
        read(flipped(whole, data.draw(st.integers(0, 8 * len(whole) - 1))))
    with pytest.raises(VerificationFailed):
        verify_consistency(old, whole[:32], new, whole[32:64], [*path, whole[:32]])
    other = old ^ 1 << data.draw(st.integers(0, 63))
    with pytest.raises(VerificationFailed):
        verify_consistency(other, whole[:32], new, whole[32:64], path)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=3), each, max_size=3),
    max_leaves=5,
)


@given(value=JSON, data=st.data())
def test_a_value_and_its_bytes_belong_together(value: Any, data: st.DataObject) -> None:
    """Whatever is read is encoded as the very bytes that were read, so that equal hashes mean equal values."""
    encoded = canonical_json(value)
    assert parse_canonical_json(encoded, "it") == value
    changed = flipped(encoded, data.draw(st.integers(0, 8 * len(encoded) - 1)))
    try:
        other = parse_canonical_json(changed, "it")
    except VerificationFailed:
        return
    assert canonical_json(other) == changed


@given(st.binary(max_size=40), st.data())
def test_another_text_is_other_bytes(content: bytes, data: st.DataObject) -> None:
    def refuse_other(text: str, read: Callable[[str], bytes]) -> None:
        assert read(text) == content
        if not text:
            return
        at = data.draw(st.integers(0, len(text) - 1))
        changed = text[:at] + data.draw(st.characters(exclude_characters=text[at])) + text[at + 1 :]
        with suppress(VerificationFailed):
            assert read(changed) != content

    refuse_other(to_base64(content), lambda text: from_base64(text, "it"))
    refuse_other(content.hex(), lambda text: from_hex(text, len(content), "it"))
