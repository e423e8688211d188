"""A bundle: one file with all that is needed to verify one analyst's part in one round, offline and for good.

    {"format": "equipoise-bundle", "version": 1, "evidence": {...}, "workload": BASE64 or null,
     "stream": [BASE64, ...], "synopsis": BASE64 or null}

`evidence` is that of `equipoise.records.evidence`; `workload` the exact bytes that were submitted; `stream` the
exact bytes of every result message, in order; `synopsis` the universe cells of the released synopsis, 4 bytes each,
little endian.
"""

from __future__ import annotations

from equipoise.records.codec import BASE64, Codec, canonical_object, codec_of, key, list_of, optional
from equipoise.records.evidence import EVIDENCE, Evidence

FORMAT = "equipoise-bundle"
VERSION = 1


@canonical_object
class Bundle:
    """The parts. `workload` is None where the analyst's was not used, `synopsis` where none was released."""

    evidence: Evidence = key("evidence", EVIDENCE)
    workload: bytes | None = key("workload", optional(BASE64))
    stream: tuple[bytes, ...] = key("stream", list_of(BASE64))
    synopsis: bytes | None = key("synopsis", optional(BASE64))

    def to_bytes(self) -> bytes:
        """Returns the file: canonical JSON."""
        return BUNDLE.to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Bundle:
        """Returns the inverse of `to_bytes`. Raises `VerificationFailed` for bytes that it does not write."""
        return BUNDLE.from_bytes(data, "the bundle")


BUNDLE: Codec[Bundle] = codec_of(Bundle, {"format": FORMAT, "version": VERSION})
