"""What A8, A9 and A11 ask of sessions besides: charged at the opening, terms kept, and receipts that agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equipoise.accounting import events_from_json
from equipoise.auditing.rounds import Recorded, RecordedRound
from equipoise.auditing.time_checks import check_taken
from equipoise.errors import VerificationFailed
from equipoise.model.accounts import JournalEntry
from equipoise.records.envelopes import open_envelope
from equipoise.records.evidence import log_origin
from equipoise.records.item_parts import RecordedSession
from equipoise.records.items import WorkloadItem
from equipoise.records.promises import Promise, check_recorded
from equipoise.records.receipts import SESSION_RECEIPT_TYPE, SessionReceiptPayload
from equipoise.records.signed_notes import VerifierKey


def check_started(history: RecordedRound, reserved: Sequence[JournalEntry], run: Sequence[JournalEntry]) -> None:
    """Checks that all of a session's charges were reserved, and that it was begun, before it opened.

    It answers from the table from its opening on.

    Args:
        history: the session on record.
        reserved: the journal's entries that reserve its charges.
        run: the journal's entries that say that it runs.

    Raises:
        VerificationFailed: the session was open before.
    """
    head = history.plan.journal.sequence
    begun = min((entry.sequence for entry in run), default=head + 1)
    if not reserved or begun > head or any(entry.sequence > begun for entry in reserved):
        raise VerificationFailed(
            f"{history.opened}: the session's charges are not reserved, and begun, before it opens"
        )


def check_session_terms(history: RecordedRound) -> None:
    """The public terms are the plan's, it is not open beyond its turns, and without a budget there is no cost."""
    parameters, public = history.plan.terms.session, history.terms.session
    if parameters is None or public != RecordedSession(
        parameters.ending, parameters.length, len(history.analysts), parameters.turn_seconds
    ):
        raise VerificationFailed(f"{history.opened}: the session's terms differ from the public parameters")
    turns = public.length * public.turn_seconds * 1_000_000
    if turns and (history.terms.close_time is None or history.terms.close_time > history.terms.open_time + turns):
        raise VerificationFailed(f"{history.opened}: the session is open for longer than its turns")
    parts = events_from_json(history.plan.plan.analyst_events)
    if history.terms.analyst_budget is None and parts:
        raise VerificationFailed(f"{history.opened}: analysts have a cost, but no budget")


def unprotected(recorded: Recorded) -> list[str]:
    """Remarks on sessions in which nothing bounds what analysts learn of one another's questions."""
    return [
        f"the session {round_id} ({history.terms.mechanism}) does not protect its {len(history.analysts)} analysts "
        "from one another: nothing bounds what one of them can learn of what the others ask"
        for round_id, history in recorded.rounds.items()
        if not history.protects_analysts
    ]


def check_promise(history: RecordedRound, analyst: str, promise: Promise) -> None:
    """Checks that a receipt promises what the round's opening has put on record.

    Args:
        history: the round on record.
        analyst: whose receipt it is, for errors.
        promise: the receipt's promise.

    Raises:
        VerificationFailed: naming the first term that differs.
    """
    try:
        check_recorded(promise, history.opened.root, history.terms)
    except VerificationFailed as error:
        raise VerificationFailed(f"{history.opened}: of {analyst!a}, {error.message}") from None


def check_session_receipts(
    recorded: Recorded, envelopes: Iterable[bytes], trusted: Sequence[VerifierKey], known: Sequence[VerifierKey]
) -> list[str]:
    """Checks that there is one receipt an answer, of a session that commits to what was asked once it is sealed.

    What is released is compared by each analyst.

    Args:
        recorded: all rounds on record.
        envelopes: receipts of sessions that analysts gave to the auditor.
        trusted: the keys that the auditor trusts.
        known: further keys of the log, by its own records.

    Returns:
        What could not be compared because the analyst was deleted.

    Raises:
        VerificationFailed: an answer has two receipts, or a receipt is of another deployment, session or terms than
            are on record, or is dated outside of its session.
    """
    removed: list[str] = []
    chains: dict[tuple[str, str, int], bytes] = {}
    for envelope in envelopes:
        receipt = SessionReceiptPayload.from_bytes(open_envelope(envelope, SESSION_RECEIPT_TYPE, trusted, known))
        if trusted[0].name != log_origin(receipt.deployment):
            raise VerificationFailed(f"a receipt is of another deployment: {receipt.deployment!a}")
        analyst, session = receipt.analyst, receipt.session
        if chains.setdefault((session, analyst, receipt.sequence), receipt.chain) != receipt.chain:
            problem = f"answer {receipt.sequence} of {analyst!a} in the session {session} has two receipts"
            raise VerificationFailed(f"{problem}: the custodian signed two different answers")
        history = recorded.rounds.get(session)
        if history is None or history.session is None or analyst not in history.analysts:
            raise VerificationFailed(f"a receipt of {analyst!a} is of the session {session}, which is not recorded")
        check_promise(history, analyst, receipt.promise)
        check_taken(recorded, history, analyst, receipt.time)
        if history.sealed is None:
            continue
        item = history.sealed.record.each(WorkloadItem)[history.analysts.index(analyst)]
        if item is None:
            removed.append(f"{analyst!a} in the session {session}")
        elif item.commitment is None:
            raise VerificationFailed(f"{history.sealed}: has no answers of {analyst!a}, who holds a receipt of one")
    return list(dict.fromkeys(removed))
