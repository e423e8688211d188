"""What A8, A9 and A11 ask of sessions besides: charged at the opening, terms kept, and receipts that agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equipoise.accounting import events_from_json
from equipoise.auditing.rounds import Recorded, RecordedRound
from equipoise.errors import VerificationFailed
from equipoise.model.accounts import JournalEntry
from equipoise.records.envelopes import open_envelope
from equipoise.records.evidence import log_origin
from equipoise.records.items import RecordedSession, WorkloadItem
from equipoise.records.receipts import SESSION_RECEIPT_TYPE, SessionReceiptPayload
from equipoise.records.signed_notes import VerifierKey


def check_started(held: RecordedRound, reserved: Sequence[JournalEntry], run: Sequence[JournalEntry]) -> None:
    """A session answers from the table from its opening on: by then all is reserved, and after it that it runs."""
    head = held.plan.journal.sequence
    begun = min((entry.sequence for entry in run), default=head + 1)
    if not reserved or begun > head or any(entry.sequence > begun for entry in reserved):
        raise VerificationFailed(
            f"{held.opened}: the session's charges are not reserved, and begun, before it opens"
        )


def check_session_terms(held: RecordedRound) -> None:
    """The public terms are the plan's, it is not open beyond its turns, and without a budget there is no cost."""
    told, public = held.plan.terms.session, held.terms.session
    if told is None or public != RecordedSession(told.ending, told.length, len(held.analysts), told.turn_seconds):
        raise VerificationFailed(f"{held.opened}: the session's terms are not the public parameters")
    turns = public.length * public.turn_seconds * 1_000_000
    if turns and (held.terms.close_time is None or held.terms.close_time > held.terms.open_time + turns):
        raise VerificationFailed(f"{held.opened}: the session is open for longer than its turns")
    parts = events_from_json(held.plan.plan.analyst_events)
    if held.terms.analyst_budget is None and parts:
        raise VerificationFailed(f"{held.opened}: analysts have a cost, but no budget")


def unprotected(recorded: Recorded) -> list[str]:
    """Remarks on sessions in which nothing bounds what analysts learn of one another's questions."""
    return [
        f"the session {round_id} ({held.terms.mechanism}) does not protect its {len(held.analysts)} analysts "
        "from one another: nothing bounds what one of them can learn of what the others ask"
        for round_id, held in recorded.rounds.items()
        if not held.protects_analysts
    ]


def check_session_receipts(
    recorded: Recorded, envelopes: Iterable[bytes], trusted: Sequence[VerifierKey], known: Sequence[VerifierKey]
) -> list[str]:
    """Of each answer one receipt, of sessions on record, in which what was asked is committed to once sealed.

    Gives what could not be compared, as the analyst was deleted. What is released is compared by each analyst.
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
            raise VerificationFailed(f"{problem}: two different things were told")
        held = recorded.rounds.get(session)
        if held is None or held.session is None or analyst not in held.analysts:
            raise VerificationFailed(f"a receipt of {analyst!a} is of the session {session}, which is not recorded")
        if held.sealed is None:
            continue
        item = held.sealed.record.each(WorkloadItem)[held.analysts.index(analyst)]
        if item is None:
            removed.append(f"{analyst!a} in the session {session}")
        elif item.commitment is None:
            raise VerificationFailed(
                f"{held.sealed}: nothing of {analyst!a} is in it, who has a receipt of an answer"
            )
    return list(dict.fromkeys(removed))
