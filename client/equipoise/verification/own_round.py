"""What an analyst verifies its part in an ended round by: the custodian's evidence, and what the profile keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from equipoise.clients.results import ResultsClient
from equipoise.errors import InvalidArgument, OutOfRange, VerificationFailed, WrongState
from equipoise.profile.accepted_losses import accepted_losses, keep_accepted_loss
from equipoise.profile.profile import LOG_KEYS, read_log_keys
from equipoise.profile.receipt_store import CHECKPOINT, ReceiptStore
from equipoise.records.admitted_losses import AdmittedLosses
from equipoise.records.evidence import Evidence
from equipoise.records.signed_notes import Checkpoint, VerifierKey, claimed, open_checkpoint
from equipoise.verification.admitted_losses import admitted_loss
from equipoise.verification.checks import VerifierInputs
from equipoise.verification.log_history import EarlierCheckpoint, Memory, check_history


@dataclass(frozen=True)
class OwnRound:
    """One analyst's part in a round that has ended. Nothing of it is verified yet.

    Attributes:
        data: the bundle, as `equipoise bundle` writes it.
        inputs: the keys that the profile trusts, the receipt and the checkpoint that it has kept, and what the log
            admits to be lost where it does not contain that checkpoint.
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
    accepted = accepted_losses(profile)
    earlier = None if kept is None else EarlierCheckpoint(kept)
    losses = (
        None if _is_continued(made.evidence, Memory(earlier, None, accepted), keys) else _shown(client, round_id)
    )
    inputs = VerifierInputs(keys, keepsakes.newest(round_id), None, earlier, (), losses, accepted)
    return OwnRound(made.to_bytes(), inputs, made.evidence.checkpoint)


def admitted_to(client: ResultsClient, profile: Path, round_id: str) -> tuple[Checkpoint, str, bytes]:
    """Asks what the log admits of the checkpoint that the profile keeps, and that it does not contain.

    Args:
        client: the analyst's.
        profile: the directory of its profile.
        round_id: a round or session of the analyst's that has ended.

    Returns:
        The kept checkpoint; what the log says of its loss, in words; the log's newest checkpoint, a signed note.

    Raises:
        WrongState: the profile keeps no checkpoint, or the log contains it; or the round has not ended.
        VerificationFailed: the log says nothing of a loss of it, or what is shown is not proven.
    """
    keys, kept = read_log_keys(profile / LOG_KEYS), ReceiptStore(profile).checkpoint()
    if kept is None:
        raise WrongState("the profile keeps no checkpoint, so no loss has to be accepted")
    try:
        evidence, _ = client.evidence(round_id, _size(kept, profile))
    except OutOfRange:
        evidence, _ = client.evidence(round_id)
    if _is_continued(evidence, Memory(EarlierCheckpoint(kept)), keys):
        raise WrongState("the log contains what the profile's checkpoint is of: nothing was lost")
    losses = client.losses(round_id)
    said = admitted_loss(losses, kept, keys)
    if not said:
        problem = f"the log does not contain the checkpoint of {claimed(kept).size:,} leaves that the profile keeps"
        raise VerificationFailed(f"{problem}, and admits no loss of it: keep the checkpoint, which is evidence")
    return claimed(kept), said, losses.checkpoint


def accept_admitted(client: ResultsClient, profile: Path, round_id: str, root: str) -> tuple[Checkpoint, str]:
    """Goes on from the log as it is now, though it has lost what the kept checkpoint is of, and says so.

    Args:
        client: the analyst's.
        profile: the directory of its profile.
        round_id: a round or session of the analyst's that has ended.
        root: the root of the checkpoint that the profile keeps, in hexadecimal: 64 digits.

    Returns:
        The checkpoint that is given up, and what the log says of its loss, in words.

    Raises:
        InvalidArgument: the profile keeps another checkpoint.
        WrongState: as `admitted_to`.
        VerificationFailed: as `admitted_to`.
    """
    lost, said, now = admitted_to(client, profile, round_id)
    kept = ReceiptStore(profile).checkpoint()
    if kept is None or claimed(kept) != lost or lost.root.hex() != root:
        raise InvalidArgument("root", f"is not that of the checkpoint in the profile, {lost.root.hex()}")
    keep_accepted_loss(profile, kept, now)
    return lost, said


def _is_continued(evidence: Evidence, memory: Memory, keys: Sequence[VerifierKey]) -> bool:
    """Whether the log has only grown since the checkpoint that is remembered."""
    listed = [VerifierKey.from_text(line) for line in evidence.keys]
    try:
        check_history(evidence, open_checkpoint(evidence.checkpoint, keys, listed), memory, keys, listed)
    except VerificationFailed:
        return False
    return True


def _shown(client: ResultsClient, round_id: str) -> AdmittedLosses | None:
    """What the log admits to be lost; None where that cannot be read: the bundle is evidence without it, too."""
    try:
        return client.losses(round_id)
    except VerificationFailed:
        return None


def _size(note: bytes, profile: Path) -> int:
    """Of the kept checkpoint. Whose signatures it has, the last check asks: it knows keys that came later."""
    try:
        return claimed(note).size
    except VerificationFailed as error:
        raise InvalidArgument(str(profile / CHECKPOINT), error.message) from None
