"""A bundle: one file with all that is needed to verify one analyst's part in one round, offline and for good.

    {"format": "equipoise-bundle", "version": 1, "evidence": {...}, "workload": BASE64 or null,
     "stream": [BASE64, ...], "synopsis": BASE64 or null}

`evidence` is that of `equipoise.records.evidence`; `workload` the exact bytes that were submitted; `stream` the
exact bytes of every result message, in order; `synopsis` the universe cells of the released synopsis, 4 bytes each,
little endian.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import VerificationFailed
from equipoise.records.codec import BASE64, Codec, canonical_object, codec_of, key, list_of, optional
from equipoise.records.evidence import EVIDENCE, Evidence
from equipoise.records.record import CELL_BYTES

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


def synopsis_to_bytes(records: NDArray[np.int64], sizes: tuple[int, ...]) -> bytes:
    """Returns the bytes that are committed to, of category numbers int64[records, attributes] over these sizes."""
    cells: bytes = np.ravel_multi_index(tuple(records.T), sizes).astype("<u4").tobytes()
    return cells


def synopsis_from_bytes(data: bytes, universe: int) -> NDArray[np.int64]:
    """Returns the universe cells of a synopsis, int64[records].

    Raises `VerificationFailed` outside the universe.
    """
    if len(data) % CELL_BYTES:
        raise VerificationFailed("the synopsis ends in the middle of a record")
    cells = np.frombuffer(data, dtype="<u4").astype(np.int64)
    if int(cells.max(initial=0)) >= universe:
        raise VerificationFailed("the synopsis holds records that the schema does not have")
    return cells
