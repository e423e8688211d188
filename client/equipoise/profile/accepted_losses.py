"""Losses of a part of the log that the profile's holder has accepted: one by one, by the root of what was lost.

The checkpoint of the lost part stays in the profile, as evidence.

    accepted-losses/ROOT    the checkpoint with this root, a signed note
"""

from __future__ import annotations

from pathlib import Path

from equipoise.profile.profile import read_file
from equipoise.profile.receipt_store import ReceiptStore, write_whole
from equipoise.records.signed_notes import claimed

LOSSES = "accepted-losses"


def keep_accepted_loss(profile: Path, lost: bytes, now: bytes) -> None:
    """Keeps a checkpoint aside whose loss was accepted, and the log as it is now in its place.

    Args:
        profile: the directory.
        lost: the checkpoint that the log does not contain, a signed note.
        now: the checkpoint that is compared with from then on, a signed note.

    Raises:
        InvalidArgument: a file cannot be written.
        VerificationFailed: `lost` is no checkpoint.
    """
    # First, so that the evidence is never in neither place.
    write_whole(profile / LOSSES / claimed(lost).root.hex(), lost)
    ReceiptStore(profile).keep_checkpoint(now)


def accepted_losses(profile: Path) -> dict[str, int]:
    """Returns the sizes of the logs whose loss was accepted, by their roots in hexadecimal.

    Args:
        profile: the directory.

    Raises:
        InvalidArgument: a file cannot be read.
        VerificationFailed: a file is no checkpoint.
    """
    kept = (claimed(read_file(path)) for path in sorted((profile / LOSSES).glob("[0-9a-f]*")))
    return {each.root.hex(): each.size for each in kept}
