"""A11: receipts promise the terms on record, and the workloads that were used are those of the newest receipts."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.auditing.rounds import Recorded
from equipoise.auditing.session_checks import check_promise, check_session_receipts
from equipoise.auditing.time_checks import check_taken
from equipoise.errors import VerificationFailed
from equipoise.records.envelopes import claimed_type, open_envelope
from equipoise.records.evidence import log_origin
from equipoise.records.items import (
    WorkloadItem,
)
from equipoise.records.receipts import RECEIPT_TYPE, SESSION_RECEIPT_TYPE, ReceiptPayload
from equipoise.records.signed_notes import VerifierKey


def check_receipts(
    recorded: Recorded, receipts: Sequence[bytes], trusted: Sequence[VerifierKey], known: Sequence[VerifierKey]
) -> list[str]:
    """A11: checks that the workload of each analyst's newest receipt is the one that was used.

    Every receipt must promise the terms on record, and be dated while its round was open, also one that is not the
    newest.

    Args:
        recorded: all rounds on record.
        receipts: envelopes that analysts gave to the auditor, of rounds and sessions.
        trusted: the keys that the auditor trusts.
        known: further keys of the log, by its own records.

    Returns:
        What could not be compared because the analyst was deleted.

    Raises:
        VerificationFailed: a receipt is of another deployment, round, workload or terms than are on record, or is
            dated before its round was opened or after it was sealed.
    """
    of_sessions = [each for each in receipts if claimed_type(each) == SESSION_RECEIPT_TYPE]
    removed = check_session_receipts(recorded, of_sessions, trusted, known)
    newest: dict[tuple[str, str], ReceiptPayload] = {}
    for envelope in (each for each in receipts if each not in of_sessions):
        receipt = ReceiptPayload.from_bytes(open_envelope(envelope, RECEIPT_TYPE, trusted, known))
        if trusted[0].name != log_origin(receipt.deployment):
            raise VerificationFailed(f"a receipt is of another deployment: {receipt.deployment!a}")
        if (told_of := recorded.rounds.get(receipt.round_id)) is not None:
            check_promise(told_of, receipt.analyst, receipt.promise)
            check_taken(recorded, told_of, receipt.analyst, receipt.accept_time)
        key = receipt.round_id, receipt.analyst
        before = newest.setdefault(key, receipt)
        if before.accept_time == receipt.accept_time and before != receipt:
            raise VerificationFailed(f"two receipts of {receipt.analyst!a} have the same time; neither is newer")
        newest[key] = max(before, receipt, key=lambda each: each.accept_time)
    for (round_id, analyst), receipt in newest.items():
        history = recorded.rounds.get(round_id)
        if history is None or analyst not in history.analysts:
            raise VerificationFailed(f"a receipt of {analyst!a} is of the round {round_id}, which is not recorded")
        if history.sealed is None:
            continue
        item = history.sealed.record.each(WorkloadItem)[history.analysts.index(analyst)]
        if item is None:
            removed.append(f"{analyst!a} in the round {round_id}")
        elif item.commitment != receipt.commitment:
            raise VerificationFailed(
                f"{history.sealed}: another workload of {analyst!a} was used than the newest receipt says"
            )
    return removed
