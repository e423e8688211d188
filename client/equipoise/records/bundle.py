"""A bundle: one file with all that is needed to verify one analyst's part in one round, offline and for good.

    {"format": "equipoise-bundle", "version": 1, "evidence": {...}, "workload": BASE64 or null,
     "stream": [BASE64, ...], "synopsis": BASE64 or null}

`evidence` is that of `equipoise.records.evidence`; `workload` the exact bytes that were submitted; `stream` the
exact bytes of every result message, in order; `synopsis` the universe cells of the released synopsis, 4 bytes each,
little endian.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import VerificationFailed
from equipoise.records.canonical import canonical_json, from_base64, parse_canonical_json, read_object, to_base64
from equipoise.records.evidence import Evidence
from equipoise.records.record import CELL_BYTES

FORMAT = "equipoise-bundle"
VERSION = 1

_NULL = type(None)
_TOP: Mapping[str, type | tuple[type, ...]] = {
    "format": str, "version": int, "evidence": dict, "workload": (str, _NULL), "stream": list,
    "synopsis": (str, _NULL),
}  # fmt: skip


@dataclass(frozen=True)
class Bundle:
    """The parts. `workload` is None where the analyst's was not used, `synopsis` where none was released."""

    evidence: Evidence
    workload: bytes | None
    stream: tuple[bytes, ...]
    synopsis: bytes | None

    def to_bytes(self) -> bytes:
        """The file: canonical JSON."""
        return canonical_json(
            {
                "format": FORMAT,
                "version": VERSION,
                "evidence": self.evidence.to_fields(),
                "workload": None if self.workload is None else to_base64(self.workload),
                "stream": [to_base64(chunk) for chunk in self.stream],
                "synopsis": None if self.synopsis is None else to_base64(self.synopsis),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Bundle:
        """The inverse of `to_bytes`. Raises `VerificationFailed` for bytes that it does not write."""
        fields = read_object(parse_canonical_json(data, "the bundle"), _TOP, "the bundle")
        if (fields["format"], fields["version"]) != (FORMAT, VERSION):
            raise VerificationFailed(f"the bundle is not of the format {FORMAT}, version {VERSION}")
        workload, synopsis = fields["workload"], fields["synopsis"]
        return cls(
            evidence=Evidence.from_fields(fields["evidence"]),
            workload=None if workload is None else from_base64(workload, "the workload"),
            stream=tuple(from_base64(chunk, "a message of the stream") for chunk in fields["stream"]),
            synopsis=None if synopsis is None else from_base64(synopsis, "the synopsis"),
        )


def synopsis_to_bytes(records: NDArray[np.int64], sizes: tuple[int, ...]) -> bytes:
    """The bytes that are committed to, of category numbers int64[records, attributes] over these sizes."""
    cells: bytes = np.ravel_multi_index(tuple(records.T), sizes).astype("<u4").tobytes()
    return cells


def synopsis_from_bytes(data: bytes, universe: int) -> NDArray[np.int64]:
    """The universe cells of a synopsis, int64[records]. Raises `VerificationFailed` outside the universe."""
    if len(data) % CELL_BYTES:
        raise VerificationFailed("the synopsis ends in the middle of a record")
    cells = np.frombuffer(data, dtype="<u4").astype(np.int64)
    if int(cells.max(initial=0)) >= universe:
        raise VerificationFailed("the synopsis holds records that the schema does not have")
    return cells
