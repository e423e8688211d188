"""What a custodian gives one analyst about one round: opened items of the round's records, with all their proofs.

    {"format": "equipoise-evidence", "version": 1, "deployment": ..., "round": ..., "analyst": ...,
     "checkpoint": NOTE, "keys": [VKEY, ...], "earlier": {"checkpoint": NOTE, "path": [HEX, ...]} or null,
     "records": [{"leaf": LEAF, "index": ..., "path": [HEX, ...],
                  "items": [{"position": ..., "content": ITEM, "salt": BASE64, "path": [HEX, ...]}, ...]}, ...],
     "receipt": ENVELOPE or null, "salt": BASE64 or null}

What was hashed or signed is carried as a string of exactly its bytes. `docs/formats.md` describes each part;
`equipoise.verification.checks` says what it proves. No part is judged here: it is only read, and refused where it
has another form than the one that is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.errors import VerificationFailed
from equipoise.records.codec import (
    HASH,
    INTEGER,
    TEXT,
    Codec,
    base64_of,
    bytes_in,
    canonical_object,
    codec_of,
    key,
    list_of,
    optional,
)
from equipoise.records.envelopes import claimed_type, open_envelope
from equipoise.records.record import SALT_BYTES
from equipoise.records.signed_notes import VerifierKey, open_checkpoint

FORMAT = "equipoise-evidence"
VERSION = 1
EXACT: Codec[bytes] = bytes_in("utf-8")  # a string of exactly the bytes that were hashed or signed
SALT: Codec[bytes] = base64_of(SALT_BYTES)
PATH: Codec[tuple[bytes, ...]] = list_of(HASH)


@canonical_object
class OpenedItem:
    """An item of a record: `path` leads from its hash, at `position` of the record's tree, to the record's root."""

    position: int = key("position", INTEGER)
    content: bytes = key("content", EXACT)
    salt: bytes = key("salt", SALT)
    path: tuple[bytes, ...] = key("path", PATH)


@canonical_object
class OpenedRecord:
    """A leaf of the log with the items that are opened. `path` leads from its hash to the checkpoint's root."""

    leaf: bytes = key("leaf", EXACT)
    index: int = key("index", INTEGER)
    path: tuple[bytes, ...] = key("path", PATH)
    items: tuple[OpenedItem, ...] = key("items", list_of(codec_of(OpenedItem)))


@canonical_object
class Earlier:
    """A checkpoint from before, a signed note, and the proof that the log has only grown since."""

    checkpoint: bytes = key("checkpoint", EXACT)
    path: tuple[bytes, ...] = key("path", PATH)


@canonical_object
class Evidence:
    """All of it. `checkpoint`: a signed note; `keys`: verifier keys of all who signed any part, a line each.

    `receipt`: the envelope of the workload that was in force, or of the last answer of a session, None where there
    was none; `salt`: that under which the workload is committed to, None likewise.
    """

    deployment: str = key("deployment", TEXT)
    round_id: str = key("round", TEXT)
    analyst: str = key("analyst", TEXT)
    checkpoint: bytes = key("checkpoint", EXACT)
    keys: tuple[str, ...] = key("keys", list_of(TEXT))
    earlier: Earlier | None = key("earlier", optional(codec_of(Earlier)))
    records: tuple[OpenedRecord, ...] = key("records", list_of(codec_of(OpenedRecord)))
    receipt: bytes | None = key("receipt", optional(EXACT))
    salt: bytes | None = key("salt", optional(SALT))

    def to_bytes(self) -> bytes:
        """Returns the canonical JSON."""
        return EVIDENCE.to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Evidence:
        """Returns the inverse of `to_bytes`. Raises `VerificationFailed` for bytes that it does not write."""
        return EVIDENCE.from_bytes(data, "the evidence")


EVIDENCE: Codec[Evidence] = codec_of(Evidence, {"format": FORMAT, "version": VERSION})


def log_origin(deployment: str) -> str:
    """Returns what the log of a deployment is called, and the keys that sign for it."""
    return f"equipoise/{deployment}"


def needed_keys(keys: Sequence[VerifierKey], notes: Sequence[bytes], receipt: bytes | None) -> list[VerifierKey]:
    """Returns those of the keys without which a signature could not be verified.

    Args:
        keys: that may have signed.
        notes: signed checkpoints.
        receipt: an envelope; None for none.
    """
    return [key for key in keys if not explained([other for other in keys if other != key], notes, receipt)]


def explained(keys: Sequence[VerifierKey], notes: Sequence[bytes], receipt: bytes | None) -> bool:
    """Returns whether every signature is by one of the keys.

    Args:
        keys: that may have signed.
        notes: signed checkpoints.
        receipt: an envelope; None for none.
    """
    try:
        for note in notes:
            open_checkpoint(note, keys)
        if receipt is not None:
            open_envelope(receipt, claimed_type(receipt), keys)
    except VerificationFailed:
        return False
    return True
