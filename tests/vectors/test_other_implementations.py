"""What we write, read by libraries that implement the same specifications independently, and the reverse."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pymerkle import InmemoryTree, verify_inclusion
from pymerkle.proof import InclusionProof
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey

from equipoise.records import merkle
from equipoise.records.canonical import canonical_json
from equipoise.records.envelopes import open_envelope, sign
from equipoise.records.signed_notes import SigningKey

LEAVES = [b"leaf %d" % number for number in range(70)]
KIND = "application/vnd.equipoise.receipt+json"
KEY = SigningKey("equipoise/north", Ed25519PrivateKey.from_private_bytes(b"\x07" * 32))


def test_pymerkle_has_the_same_trees_and_proofs_of_inclusion() -> None:
    hashes = [merkle.leaf_hash(each) for each in LEAVES]
    theirs = InmemoryTree(algorithm="sha256")
    theirs.append_entries(LEAVES)
    for size in (1, 2, 3, 6, 7, 8, 33, 64, 70):
        root = merkle.root_of(hashes[:size])
        assert theirs.get_root(size) == root
        for index in range(size):
            path = merkle.inclusion_path(hashes[:size], index)
            proof = theirs.prove_inclusion(index + 1, size)
            assert [hashes[index], *path] == proof.path
            ours = InclusionProof("sha256", True, size, index + 1, proof.rule, [hashes[index], *path])
            verify_inclusion(hashes[index], root, ours, index=index + 1, size=size, algorithm="sha256")
            merkle.verify_inclusion(proof.path[0], index, size, proof.path[1:], root)


def their_key() -> SSlibKey:
    return SSlibKey.from_crypto(KEY.private.public_key(), keyid=KEY.verifier.label)


def test_securesystemslib_verifies_our_envelopes() -> None:
    envelope = json.loads(sign(KIND, b"payload", [KEY]))
    read = Envelope.from_dict(envelope)
    assert read.payload == b"payload"
    assert list(read.verify([their_key()], threshold=1)) == [KEY.verifier.label]
    read.payload = b"payloae"
    with pytest.raises(VerificationError):
        read.verify([their_key()], threshold=1)


def test_we_verify_envelopes_of_securesystemslib() -> None:
    theirs = Envelope(b"payload", KIND, {})
    theirs.sign(CryptoSigner(KEY.private, their_key()))
    assert open_envelope(canonical_json(theirs.to_dict()), KIND, [KEY.verifier]) == b"payload"
