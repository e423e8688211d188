"""Signed envelopes: exact bytes of one type, by known keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from equipoise.errors import VerificationFailed
from equipoise.records.canonical import canonical_json
from equipoise.records.envelopes import open_envelope, sign
from equipoise.records.signed_notes import SigningKey, sign_note

FIRST, SECOND = (
    SigningKey("equipoise/north", Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)) for number in (1, 2)
)
KIND = "application/vnd.equipoise.receipt+json"
PAYLOAD = b'{"round":"r"}'
ENVELOPE = sign(KIND, PAYLOAD, [FIRST, SECOND])
KEYS = [FIRST.verifier, SECOND.verifier]


def test_an_envelope_is_opened_by_whoever_trusts_one_of_its_keys() -> None:
    assert open_envelope(ENVELOPE, KIND, KEYS) == PAYLOAD
    assert open_envelope(ENVELOPE, KIND, KEYS[:1], listed_keys=KEYS[1:]) == PAYLOAD
    with pytest.raises(VerificationFailed, match="unknown key"):
        open_envelope(ENVELOPE, KIND, KEYS[:1])
    with pytest.raises(VerificationFailed, match="not signed by a trusted key"):
        open_envelope(ENVELOPE, KIND, [], listed_keys=KEYS)


def test_a_payload_is_of_its_type_only() -> None:
    with pytest.raises(VerificationFailed, match="type"):
        open_envelope(ENVELOPE, "text/plain", KEYS)
    fields = json.loads(ENVELOPE)
    for change in ({"payloadType": "text/plain"}, {"payload": "e30="}):
        with pytest.raises(VerificationFailed, match="is wrong"):
            open_envelope(canonical_json(fields | change), str({**fields, **change}["payloadType"]), KEYS)


def changed(**change: Any) -> bytes:
    fields = json.loads(ENVELOPE)
    first, _ = fields["signatures"]
    return canonical_json(fields | {"signatures": [first | change]})


@pytest.mark.parametrize(
    "envelope",
    [
        b"",
        b"[]",
        ENVELOPE + b"\n",
        json.dumps(json.loads(ENVELOPE)).encode(),
        canonical_json(json.loads(ENVELOPE) | {"more": 1}),
        canonical_json({"payload": "", "payloadType": KIND}),
        canonical_json(json.loads(ENVELOPE) | {"signatures": []}),
        canonical_json(json.loads(ENVELOPE) | {"signatures": [None]}),
        canonical_json(json.loads(ENVELOPE) | {"signatures": json.loads(ENVELOPE)["signatures"] * 2}),
        changed(more=1),
        changed(keyid="equipoise/north"),
        changed(keyid=SECOND.verifier.label),
        changed(keyid=FIRST.verifier.label.upper()),
        changed(sig=""),
        changed(sig="AA="),
    ],
)
def test_what_is_not_written_as_an_envelope_is_refused(envelope: bytes) -> None:
    with pytest.raises(VerificationFailed):
        open_envelope(envelope, KIND, KEYS)


def test_a_notes_signature_covers_no_envelope() -> None:
    """Both are signed with one key: no text of a checkpoint is what an envelope's signature covers."""
    note = sign_note(PAYLOAD.decode() + "\n", [FIRST]).decode()
    signature = json.loads(ENVELOPE)["signatures"][0] | {"sig": note.rsplit(" ", 1)[1].strip()}
    with pytest.raises(VerificationFailed, match="is wrong"):
        open_envelope(canonical_json(json.loads(ENVELOPE) | {"signatures": [signature]}), KIND, KEYS)
