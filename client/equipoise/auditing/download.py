"""Downloads all records of a custodian, page by page, in an order that leaves no gaps.

1. The rounds and the journal. Each of their entries enters the log within moments.
2. The log. Each entry of the journal that it commits to is in the journal already.
3. The journal again, for the entries that the log gained in between.

The journal may have gained entries that the log does not commit to yet. They are left to the next download, as
their rounds may not be recorded yet.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from equipoise.auditing.archive import Archive, AuditorLog, ListedRound
from equipoise.auditing.identities import read_identities
from equipoise.auditing.identity_checks import withheld
from equipoise.auditing.round_checks import behind
from equipoise.auditing.rounds import read_rounds
from equipoise.auditing.steps import Step, open_steps
from equipoise.clients.auditor import Auditor
from equipoise.errors import VerificationFailed
from equipoise.model.accounts import JournalEntry
from equipoise.model.log import RecordOpening
from equipoise.model.rounds import RoundDetail
from equipoise.model.times import to_microseconds
from equipoise.records.signed_notes import claimed

PATIENCE_SECONDS = 30.0  # records enter the log within a second, of a server that is not very busy
PAUSE_SECONDS = 0.5


def download(auditor: Auditor, earlier: bytes | None = None, own: AuditorLog | None = None) -> Archive:
    """Downloads every record of a deployment.

    Waits up to 30 seconds until the log has caught up with the rounds, the journal and deletions of analysts. If it
    has not, the archive holds what there is, and its checks say what is missing.

    Args:
        auditor: the auditor's client.
        earlier: the checkpoint that the auditor has from before, a signed note; None: none.
        own: what the auditor itself has done and noted; None: nothing.
    """
    now = datetime.now(UTC)
    rounds = tuple(map(_listed_round, auditor.rounds()))
    listed = tuple(auditor.journal())
    given_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        checkpoint, leaves, records = read_log(auditor)
        steps = _steps(leaves, records)
        if not _lags(rounds, listed, steps, now) or time.monotonic() > given_up:
            break
        time.sleep(PAUSE_SECONDS)
    known = max([len(listed), *(step.journal.sequence for step in steps if step.journal is not None)])
    journal = tuple(entry for _, entry in zip(range(known), auditor.journal(), strict=False))
    return Archive(now, checkpoint, earlier, leaves, records, rounds, journal, own or AuditorLog())


def read_log(auditor: Auditor) -> tuple[bytes, tuple[bytes, ...], tuple[RecordOpening, ...]]:
    """Returns the newest checkpoint, a signed note, with the leaves and records as far as it goes.

    Nothing is checked: whether the custodian has signed it, and whether the leaves are what it says.
    """
    checkpoint = auditor.checkpoint()
    # Only as far as it says; whether it may say so, the checks find out.
    size = claimed(checkpoint).size
    leaves = tuple(leaf for _, leaf in zip(range(size), auditor.leaves(), strict=False))
    records = tuple(record for _, record in zip(range(size), auditor.records(), strict=False))
    return checkpoint, leaves, records


def _steps(leaves: tuple[bytes, ...], records: tuple[RecordOpening, ...]) -> tuple[Step, ...]:
    """The steps of the log; none where it cannot be read, which is for the checks to say."""
    try:
        return open_steps(records, leaves)
    except VerificationFailed:
        return ()


def _lags(
    rounds: tuple[ListedRound, ...], listed: tuple[JournalEntry, ...], steps: tuple[Step, ...], now: datetime
) -> bool:
    try:
        recorded, known = read_rounds(steps), read_identities(steps)
    except VerificationFailed:
        return False  # for the checks to say
    charged = {entry.round_id for entry in listed if entry.round_id}
    # Whoever is deleted while the log is read has lost its items before its deletion enters the log.
    return (
        not charged <= recorded.rounds.keys()
        or any(behind(each, recorded, now) for each in rounds)
        or bool(withheld(recorded, known))
    )


def _listed_round(detail: RoundDetail) -> ListedRound:
    shown = detail.round
    release = None if shown.release_time is None else to_microseconds(shown.release_time)
    return ListedRound(shown.id, shown.terms.dataset, shown.state.value, to_microseconds(shown.open_time), release)
