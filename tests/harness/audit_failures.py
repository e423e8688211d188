"""Which checks of an audit fail, and what they say."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.auditing.archive import Archive
from equipoise.auditing.verify import Audit, Outcome, verify
from harness.custodian import Custodian


def failed_checks(audit: Audit) -> dict[str, str]:
    """What each check that failed says, by its number."""
    return {check.number: check.detail for check in audit.checks if check.outcome is Outcome.FAILED}


def failures(custodian: Custodian, archive: Archive | None = None, seen: Sequence[bytes] = ()) -> dict[str, str]:
    """What an audit of the custodian's archive, or of another one, finds. `seen`: checkpoints seen before."""
    return failed_checks(verify(archive or custodian.archive(), custodian.trusted, seen))
