"""What an analyst verifies its part in an ended round by: the custodian's evidence, and what the profile keeps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from equipoise.clients.results import ResultsClient
from equipoise.errors import InvalidArgument, OutOfRange, VerificationFailed
from equipoise.profile.profile import LOG_KEYS, read_log_keys
from equipoise.profile.receipt_store import CHECKPOINT, ReceiptStore
from equipoise.records.signed_notes import claimed
from equipoise.verification.checks import VerifierInputs
from equipoise.verification.log_history import EarlierCheckpoint


@dataclass(frozen=True)
class OwnRound:
    """One analyst's part in a round that has ended. Nothing of it is verified yet.

    Attributes:
        data: the bundle, as `equipoise bundle` writes it.
        inputs: the keys that the profile trusts, and the receipt and the checkpoint that it has kept.
        checkpoint: the log's, of the bundle; to be kept once the bundle was looked at.
    """

    data: bytes
    inputs: VerifierInputs
    checkpoint: bytes


def download_own_round(client: ResultsClient, profile: Path, round_id: str) -> OwnRound:
    """Downloads all evidence of the caller's part in a round.

    Args:
        client: the analyst's.
        profile: the directory of its profile.
        round_id: the round or session, which has ended.

    Raises:
        InvalidArgument: a file of the profile cannot be read.
        WrongState: the round has not ended, or its results are no longer kept.
    """
    keys, keepsakes = read_log_keys(profile / LOG_KEYS), ReceiptStore(profile)
    kept = keepsakes.checkpoint()
    try:
        made = client.bundle(round_id, 0 if kept is None else _size(kept, profile))
    except OutOfRange:
        # The custodian does not know the checkpoint that it signed: the last check will say so.
        made = client.bundle(round_id)
    earlier = None if kept is None else EarlierCheckpoint(kept)
    inputs = VerifierInputs(keys, keepsakes.newest(round_id), None, earlier)
    return OwnRound(made.to_bytes(), inputs, made.evidence.checkpoint)


def _size(note: bytes, profile: Path) -> int:
    """Of the kept checkpoint. Whose signatures it has, the last check asks: it knows keys that came later."""
    try:
        return claimed(note).size
    except VerificationFailed as error:
        raise InvalidArgument(str(profile / CHECKPOINT), error.message) from None
