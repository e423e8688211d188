"""Compares the numbers of a measurement, from which later rounds answer, with the store and the release."""

from __future__ import annotations

from hashlib import sha256

from equipoise_server.replay.differences import same
from equipoise_server.replay.stored import StoredRound


def check_measured(stored: StoredRound, computed: bytes) -> str:
    """Raise `Differs` unless the stored numbers are the computed ones, and those that the release commits to."""
    numbers = stored.measured()
    same("the measurement's numbers", sha256(numbers).hexdigest(), sha256(computed).hexdigest())
    same("the measurement", stored.committed.release.measurement, sha256(numbers).digest())
    return f"{len(numbers):,} bytes of numbers agree, as on record"
