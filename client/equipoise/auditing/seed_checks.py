"""A10: no seed serves two rounds, and what the auditor itself did for rounds' randomness is on record."""

from __future__ import annotations

from equipoise.auditing.archive import AuditorLog
from equipoise.auditing.rounds import Recorded
from equipoise.errors import VerificationFailed
from equipoise.records.items import SealItem


def check_seeds(recorded: Recorded, own: AuditorLog) -> None:
    """A10: what the auditor itself did for a round's randomness is on record: its nonces, and what it read."""
    for round_id, nonce in own.nonces.items():
        history = recorded.rounds.get(round_id)
        if history is None:
            raise VerificationFailed(f"the round {round_id} got a nonce of the auditor's, but is not recorded")
        if history.sealed is not None and history.sealed.one(SealItem).nonce != bytes.fromhex(nonce):
            raise VerificationFailed(f"{history.sealed}: does not name the nonce that the auditor gave")
    for round_id, times in own.reads.items():
        history = recorded.rounds.get(round_id)
        recorded_reads = 0 if history is None else sum(read.auditor == own.name for read in history.reads)
        if recorded_reads < times:
            raise VerificationFailed(
                f"the seed of the round {round_id} was read {times} times, of which {recorded_reads} are recorded"
            )
    fingerprints: dict[bytes, str] = {}
    for round_id, history in recorded.rounds.items():
        other = fingerprints.setdefault(history.terms.seed_fingerprint, round_id)
        if other != round_id:
            raise VerificationFailed(f"{history.opened}: has the same seed as the round {other}")
    commitments = [history.terms.seed_commitment for history in recorded.rounds.values()]
    if len(set(commitments)) != len(commitments):
        raise VerificationFailed("two rounds have the same seed commitment")
