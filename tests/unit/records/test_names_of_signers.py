"""All keys that sign a checkpoint have the name of its log, in whatever order they sign."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from equipoise.errors import VerificationFailed
from equipoise.records.merkle import EMPTY_ROOT
from equipoise.records.signed_notes import Checkpoint, SigningKey, open_checkpoint, open_note, sign_note

CHECKPOINT = Checkpoint("equipoise/north", 0, EMPTY_ROOT)
OWN, SECOND = (
    SigningKey("equipoise/north", Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)) for number in (1, 2)
)
STRANGER = SigningKey("equipoise/south", Ed25519PrivateKey.from_private_bytes(bytes([3]) * 32))


@pytest.mark.parametrize("place", range(3))
def test_a_signature_under_another_name_is_refused_wherever_it_stands(place: int) -> None:
    """Though the key is known, and the note is signed by a trusted one besides."""
    keys = [OWN, SECOND]
    listed = [SECOND.verifier, STRANGER.verifier]
    assert open_checkpoint(sign_note(CHECKPOINT.to_text(), keys), [OWN.verifier], listed) == CHECKPOINT
    keys.insert(place, STRANGER)
    note = sign_note(CHECKPOINT.to_text(), keys)
    assert open_note(note, [OWN.verifier], listed) == CHECKPOINT.to_text()
    with pytest.raises(VerificationFailed, match="origin is not the name of the keys that signed it"):
        open_checkpoint(note, [OWN.verifier], listed)
