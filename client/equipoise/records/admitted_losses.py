"""What a custodian shows everybody of the parts of its log that are lost, with all proofs.

    {"format": "equipoise-losses", "version": 1, "deployment": ..., "checkpoint": NOTE, "keys": [VKEY, ...],
     "records": [{"leaf": LEAF, "index": ..., "path": [HEX, ...], "items": [...]}, ...]}

The records say that a store was restored from an older copy, of each restoration the first one, or that a key of
the log was retired. Each is opened as in the evidence of a round. No part is judged here: it is only read,
and refused where it has another form than the one that is written.
"""

from __future__ import annotations

from equipoise.records.codec import TEXT, Codec, canonical_object, codec_of, key, list_of
from equipoise.records.evidence import EXACT, OpenedRecord

FORMAT = "equipoise-losses"
VERSION = 1


@canonical_object
class AdmittedLosses:
    """All of it. `checkpoint`: a signed note; `keys`: verifier keys of all who signed it, a line each."""

    deployment: str = key("deployment", TEXT)
    checkpoint: bytes = key("checkpoint", EXACT)
    keys: tuple[str, ...] = key("keys", list_of(TEXT))
    records: tuple[OpenedRecord, ...] = key("records", list_of(codec_of(OpenedRecord)))

    def to_bytes(self) -> bytes:
        """Returns the canonical JSON."""
        return ADMITTED_LOSSES.to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> AdmittedLosses:
        """Returns the inverse of `to_bytes`. Raises `VerificationFailed` for bytes that it does not write."""
        return ADMITTED_LOSSES.from_bytes(data, "what the log admits to be lost")


ADMITTED_LOSSES: Codec[AdmittedLosses] = codec_of(AdmittedLosses, {"format": FORMAT, "version": VERSION})
