"""What a custodian signs with each answer of a session: all that its analyst has asked and been told so far.

A chain of hashes goes over the exact bytes of every statement, its slot and its answers, under the salt that the
analyst has drawn. Each answer comes with its receipt, so that what was told while the session was open cannot
differ from what is released at its end: `equipoise.verification.checks` computes the chain again from the two. The
newest receipt is enough, as it stands for all before it. `docs/formats.md` has both byte for byte.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import VerificationFailed
from equipoise.records.canonical import canonical_json, from_hex, parse_canonical_json, read_object
from equipoise.records.merkle import HASH_BYTES
from equipoise.records.record import SALT_BYTES

SESSION_RECEIPT_TYPE = "application/vnd.equipoise.session-receipt+json"
VERSION = 1
WHAT = "a session's receipt"


def chain_start(deployment: str, session: str, analyst: str, salt: bytes) -> bytes:
    """The chain of which nothing was asked yet, 32 bytes; `salt`: the analyst's, 32 bytes."""
    if len(salt) != SALT_BYTES:
        raise ValueError(f"a salt has {SALT_BYTES} bytes, not {len(salt)}")
    names = canonical_json({"deployment": deployment, "session": session, "analyst": analyst})
    return hashlib.sha256(b"equipoise session v1\n" + salt + names).digest()


def chain_step(
    chain: bytes,
    sequence: int,
    slot: int,
    statement: bytes,
    values: NDArray[np.int64],
    methods: NDArray[np.uint8],
    bounds: NDArray[np.int64],
) -> bytes:
    """The chain after the analyst's next statement, its `sequence`-th from 1, and the answers to its cells.

    `statement`: its exact bytes; `values`, `methods` and `bounds`, each [cells], as `equipoise.wire.workloads`
    reads them.
    """
    if not len(values) == len(methods) == len(bounds):
        raise ValueError(f"{len(values)} values, {len(methods)} methods and {len(bounds)} bounds are no answers")
    # All parts but the columns have a fixed length, and the number of cells gives those: so nothing is ambiguous.
    numbers = b"".join(number.to_bytes(8, "little") for number in (sequence, slot, len(values)))
    columns = values.astype("<i8").tobytes() + methods.astype("u1").tobytes() + bounds.astype("<i8").tobytes()
    return hashlib.sha256(chain + numbers + hashlib.sha256(statement).digest() + columns).digest()


@dataclass(frozen=True)
class SessionReceiptPayload:
    """The payload: `chain` after the analyst's `sequence`-th answer. `time`: microseconds since 1970, UTC."""

    deployment: str
    session: str
    analyst: str
    sequence: int
    chain: bytes
    time: int

    def to_bytes(self) -> bytes:
        """The exact bytes that are signed: canonical JSON."""
        return canonical_json(
            {
                "version": VERSION,
                "deployment": self.deployment,
                "session": self.session,
                "analyst": self.analyst,
                "sequence": self.sequence,
                "chain": self.chain.hex(),
                "time": self.time,
            }
        )

    @classmethod
    def from_bytes(cls, payload: bytes) -> SessionReceiptPayload:
        """The inverse of `to_bytes`. Raises `VerificationFailed` for bytes that it does not write."""
        fields = read_object(
            parse_canonical_json(payload, WHAT),
            {
                "version": int,
                "deployment": str,
                "session": str,
                "analyst": str,
                "sequence": int,
                "chain": str,
                "time": int,
            },
            WHAT,
        )
        if fields["version"] != VERSION:
            raise VerificationFailed(f"{WHAT} has version {fields['version']}, but must have {VERSION}")
        if fields["sequence"] < 1 or fields["time"] < 0:
            raise VerificationFailed(f"{WHAT} is of no answer, or has a time before 1970")
        return cls(
            fields["deployment"],
            fields["session"],
            fields["analyst"],
            fields["sequence"],
            from_hex(fields["chain"], HASH_BYTES, f"the chain of {WHAT}"),
            fields["time"],
        )
