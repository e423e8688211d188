"""What a custodian signs when it takes a workload, or takes one back: the payload of a receipt's envelope.

A receipt says which workload of an analyst is in force from then on; its commitment is
`equipoise.records.record.workload_commitment`, under the salt that the analyst has drawn. The newest receipt
counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.errors import VerificationFailed
from equipoise.records.canonical import canonical_json, from_hex, parse_canonical_json, read_object
from equipoise.records.merkle import HASH_BYTES

RECEIPT_TYPE = "application/vnd.equipoise.receipt+json"
VERSION = 1
WHAT = "a receipt"


@dataclass(frozen=True)
class ReceiptPayload:
    """The payload. `commitment` is None, and both numbers are 0, where the workload was withdrawn.

    `accept_time`: microseconds since 1970, UTC.
    """

    deployment: str
    round_id: str
    analyst: str
    commitment: bytes | None
    statements: int
    queries: int
    accept_time: int

    def to_bytes(self) -> bytes:
        """The exact bytes that are signed: canonical JSON."""
        return canonical_json(
            {
                "version": VERSION,
                "deployment": self.deployment,
                "round": self.round_id,
                "analyst": self.analyst,
                "commitment": None if self.commitment is None else self.commitment.hex(),
                "statements": self.statements,
                "queries": self.queries,
                "accept_time": self.accept_time,
            }
        )

    @classmethod
    def from_bytes(cls, payload: bytes) -> ReceiptPayload:
        """The inverse of `to_bytes`. Raises `VerificationFailed` for bytes that it does not write."""
        fields = read_object(
            parse_canonical_json(payload, WHAT),
            {
                "version": int,
                "deployment": str,
                "round": str,
                "analyst": str,
                "commitment": (str, type(None)),
                "statements": int,
                "queries": int,
                "accept_time": int,
            },
            WHAT,
        )
        if fields["version"] != VERSION:
            raise VerificationFailed(f"{WHAT} has version {fields['version']}, but must have {VERSION}")
        commitment = fields["commitment"]
        if commitment is not None:
            commitment = from_hex(commitment, HASH_BYTES, f"the commitment of {WHAT}")
        elif fields["statements"] or fields["queries"]:
            raise VerificationFailed(f"{WHAT} for nothing counts statements or queries")
        if min(fields["statements"], fields["queries"], fields["accept_time"]) < 0:
            raise VerificationFailed(f"{WHAT} holds a negative number")
        return cls(
            fields["deployment"],
            fields["round"],
            fields["analyst"],
            commitment,
            fields["statements"],
            fields["queries"],
            fields["accept_time"],
        )
