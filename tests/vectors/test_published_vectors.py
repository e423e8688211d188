"""Trees, notes, checkpoints and envelopes that others have published, as `published.json` says where."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from harness.consistency import consistency_path

from equipoise.records.canonical import from_base64
from equipoise.records.envelopes import open_envelope, sign, signed_bytes
from equipoise.records.merkle import (
    inclusion_path,
    leaf_hash,
    root_of,
    verify_consistency,
    verify_inclusion,
)
from equipoise.records.signed_notes import Checkpoint, SigningKey, VerifierKey, open_note, sign_note

PUBLISHED: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("published.json").read_text("utf-8"))
TREES, NOTES, ENVELOPES = PUBLISHED["merkle_trees"], PUBLISHED["signed_notes"], PUBLISHED["envelopes"]
HASHES = [leaf_hash(bytes.fromhex(each)) for each in TREES["leaves"]]
ROOTS = [bytes.fromhex(each) for each in TREES["roots"]]


def test_the_roots_are_those_of_certificate_transparency() -> None:
    assert [root_of(HASHES[:size]) for size in range(1, len(HASHES) + 1)] == ROOTS


@pytest.mark.parametrize("proof", TREES["inclusion"], ids=str)
def test_proofs_of_inclusion_are_the_published_ones(proof: dict[str, Any]) -> None:
    index, size = proof["index"], proof["size"]
    path = [base64.b64decode(each) for each in proof["path"]]
    assert inclusion_path(HASHES[:size], index) == path
    verify_inclusion(HASHES[index], index, size, path, ROOTS[size - 1])


@pytest.mark.parametrize("proof", TREES["consistency"], ids=str)
def test_proofs_of_consistency_are_the_published_ones(proof: dict[str, Any]) -> None:
    old, new = proof["old_size"], proof["new_size"]
    path = [base64.b64decode(each) for each in proof["path"]]
    assert consistency_path(HASHES[:new], old) == path
    verify_consistency(old, ROOTS[old - 1], new, ROOTS[new - 1], path)


@pytest.mark.parametrize("published", NOTES["notes"], ids=lambda each: each["verifier_keys"][-1])
def test_notes_are_read_and_written_as_published(published: dict[str, Any]) -> None:
    keys = [VerifierKey.from_text(each) for each in published["verifier_keys"]]
    assert [key.to_text() for key in keys] == published["verifier_keys"]
    note = published["note"].encode()
    text = open_note(note, keys[-1:], listed_keys=keys)
    if "checkpoint" in published:
        checkpoint = published["checkpoint"]
        root = from_base64(checkpoint["root"], "the root")
        assert Checkpoint.from_text(text) == Checkpoint(checkpoint["origin"], checkpoint["size"], root)
    if "signing_key" in published:
        private = base64.b64decode(published["signing_key"].split("+", 4)[4])[1:]
        key = SigningKey(keys[0].name, Ed25519PrivateKey.from_private_bytes(private))
        assert key.verifier == keys[0]
        assert sign_note(text, [key]) == note


@pytest.mark.parametrize("vector", ENVELOPES["vectors"], ids=lambda each: each["signed_bytes"][:60])
def test_envelopes_are_signed_as_published(vector: dict[str, Any]) -> None:
    payload, kind = base64.b64decode(vector["payload"]), vector["payload_type"]
    assert signed_bytes(kind, payload).hex() == vector["signed_bytes"]
    keys = [
        SigningKey(name, Ed25519PrivateKey.from_private_bytes(bytes.fromhex(ENVELOPES["keys"][name])))
        for name in vector["signatures"]
    ]
    envelope = sign(kind, payload, keys)
    signatures = [each["sig"] for each in json.loads(envelope)["signatures"]]
    assert signatures == list(vector["signatures"].values())
    assert open_envelope(envelope, kind, [key.verifier for key in keys]) == payload
