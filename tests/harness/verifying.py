"""What tests of the verifier share: a log, papers, and which check a bundle fails."""

from __future__ import annotations

from dataclasses import replace

from equipoise.records.bundle import Bundle
from equipoise.verification.checks import Check, CheckFailed, VerifierInputs, verify
from harness.small_custodian import Custodian, signing_key

KEY = signing_key(1).verifier


def log_of(size: int = 5) -> Custodian:
    log = Custodian()
    log.grow(size)
    return log


def papers(**kept: object) -> VerifierInputs:
    return VerifierInputs([KEY], **kept)  # type: ignore[arg-type]


def found(bundle: Bundle | bytes, kept: VerifierInputs | None = None) -> Check | None:
    """The number of the check that fails; those before it must have been made, in order."""
    data = bundle.to_bytes() if isinstance(bundle, Bundle) else bundle
    made: list[Check] = []
    failed = None
    try:
        verify(data, papers() if kept is None else kept, lambda check, said: made.append(check))
    except CheckFailed as error:
        failed = error.check
    assert made == list(Check)[: len(Check) if failed is None else failed - 1]
    return failed


def with_evidence(bundle: Bundle, **changes: object) -> Bundle:
    return replace(bundle, evidence=replace(bundle.evidence, **changes))  # type: ignore[arg-type]


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
