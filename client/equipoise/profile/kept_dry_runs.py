"""The errors that the newest dry run of a round has told, kept in the profile: receipts must promise the same.

    dry-runs/ROUND    the largest half-width, and how many answers can be without an interval, in canonical JSON

By these an analyst may decide whether to ask. Where the file is removed, nothing is compared.
"""

from __future__ import annotations

from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.model.submissions import DryRun
from equipoise.profile.profile import read_file
from equipoise.profile.receipt_store import ReceiptStore, write_whole
from equipoise.records.promises import TOLD_ERRORS, ToldErrors

DRY_RUNS = "dry-runs"


def keep_dry_run(keepsakes: ReceiptStore, round_id: str, told: DryRun) -> None:
    """Keeps what a dry run has told, in place of an earlier one. Raises `InvalidArgument` naming the file."""
    errors = ToldErrors(told.max_half_width, told.max_uncertified)
    write_whole(keepsakes.file(DRY_RUNS, round_id), TOLD_ERRORS.to_bytes(errors))


def kept_dry_run(keepsakes: ReceiptStore, round_id: str) -> ToldErrors | None:
    """Returns what the newest dry run of a round has told; None where none was kept.

    Args:
        keepsakes: the profile's.
        round_id: the round or session.

    Raises:
        InvalidArgument: the file cannot be read, or is not what was written; the field is its name.
    """
    path = keepsakes.file(DRY_RUNS, round_id)
    if not path.exists():
        return None
    try:
        return TOLD_ERRORS.from_bytes(read_file(path), "the file")
    except VerificationFailed:
        raise InvalidArgument(str(path), "is damaged; remove it, or make a dry run again") from None
