"""Losses of a part of the log, which an auditor accepts: one by one, by the digest of what was lost.

A custodian that restored an older copy of its store has a log that does not contain all that was seen of it. It
says so in the log, and no audit passes until the auditor has accepted that very loss. The checkpoint of the lost
part stays in the profile, as evidence; audits name it from then on.

    accepted-losses/ROOT    the checkpoint with this root, a signed note
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from equipoise.auditing.log_checks import check_continuation, check_root, check_signatures, told_loss
from equipoise.auditing.steps import open_steps
from equipoise.errors import InvalidArgument, VerificationFailed, WrongState
from equipoise.model.log import RecordOpening
from equipoise.profile.accepted_losses import keep_accepted_loss
from equipoise.profile.receipt_store import ReceiptStore
from equipoise.records.signed_notes import Checkpoint, VerifierKey, claimed


def accept_loss(
    profile: Path,
    root: str,
    log: tuple[bytes, tuple[bytes, ...], tuple[RecordOpening, ...]],
    trusted: Sequence[VerifierKey],
) -> tuple[Checkpoint, Checkpoint]:
    """Goes on from the log as it is now, though the custodian has lost what the kept checkpoint is of, and says so.

    Args:
        profile: the auditor's directory.
        root: the root of the checkpoint that it keeps, in hexadecimal: 64 digits.
        log: its newest checkpoint, a signed note; its leaves; its opened records.
        trusted: the custodian's keys.

    Returns:
        The checkpoint that is given up, and the one that is kept instead.

    Raises:
        InvalidArgument: the profile keeps another checkpoint.
        WrongState: it keeps none, or the log contains it.
        VerificationFailed: the log is not what it must be, or does not say that it has lost that part.
    """
    note, leaves, records = log
    kept = ReceiptStore(profile).checkpoint()
    if kept is None:
        raise WrongState("the profile keeps no checkpoint, so no loss has to be accepted")
    before = claimed(kept)
    if before.root.hex() != root:
        raise InvalidArgument("root", f"is not that of the checkpoint in the profile, {before.root.hex()}")
    steps = open_steps(records, leaves)
    checkpoint, known = check_signatures(note, trusted, steps)
    check_root(checkpoint, leaves)
    try:
        check_continuation(checkpoint, leaves, [kept], trusted, known, steps)
    except VerificationFailed as error:
        if not told_loss(kept, steps, trusted):
            problem = f"{error.message}. The log says nothing of a loss: keep the checkpoint, which is evidence"
            raise VerificationFailed(problem) from None
    else:
        raise WrongState("the log contains what the profile's checkpoint is of: nothing was lost")
    keep_accepted_loss(profile, kept, note)
    return before, checkpoint
