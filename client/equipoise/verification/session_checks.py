"""The checks of a session: its receipts, its slots, and that the released answers are the live ones.

Every answer came with a receipt of all answers so far (`equipoise.records.receipts`). The custodian's copy
is the last one, the analyst's own the newest that it has kept, which may be older: each must be on the chain of
what is released.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from equipoise.errors import BudgetExhausted, VerificationFailed
from equipoise.queries.statements import Statement
from equipoise.records.bundle import Bundle
from equipoise.records.envelopes import open_envelope
from equipoise.records.evidence import Evidence
from equipoise.records.promises import check_recorded
from equipoise.records.proven_round import ProvenRound
from equipoise.records.receipts import SESSION_RECEIPT_TYPE, SessionReceiptPayload, chain_start, chain_step
from equipoise.records.record import workload_commitment
from equipoise.records.signed_notes import VerifierKey
from equipoise.results import Results
from equipoise.verification.grant_checks import check_noise, check_spending
from equipoise.verification.question_checks import OwnQuestions, check_session_questions
from equipoise.wire.outline import asked_from_bytes
from equipoise.wire.session_workload import compile_asked
from equipoise.wire.statements import sent_from_bytes, statement_to_bytes


@dataclass(frozen=True)
class SessionReceipts:
    """The custodian's copy of the last receipt, None where nothing was answered; and the analyst's own, if any."""

    last: SessionReceiptPayload | None
    own: SessionReceiptPayload | None


@dataclass(frozen=True)
class AskedInSession:
    """What one analyst asked: each statement's exact bytes, its slot, and how many queries it is."""

    statements: tuple[bytes, ...]
    slots: tuple[int, ...]
    queries: tuple[int, ...]
    salt: bytes

    @property
    def query_count(self) -> int:
        """The number of queries of all statements together."""
        return sum(self.queries)


def check_session_receipts(
    evidence: Evidence,
    proven: ProvenRound,
    kept: bytes | None,
    trusted: Sequence[VerifierKey],
    listed_keys: Sequence[VerifierKey],
) -> tuple[SessionReceipts, str]:
    """Checks the receipt of a session's last answer against the records and against the analyst's own receipt.

    Args:
        evidence: The bundle's evidence.
        proven: The round, and the analyst's share of it, on record.
        kept: The newest envelope that the analyst got from the server at the time; None if none was kept.
        trusted: The keys that the analyst trusts.
        listed_keys: Further keys of the log, as the bundle lists them.

    Returns:
        The receipts, and what they are, for people.

    Raises:
        VerificationFailed: A receipt promises other terms than are on record, does not have every answer that the
            own one has, has another chain of answers, or is not what was sealed.
    """
    last = None if evidence.receipt is None else _read(evidence.receipt, evidence, trusted, listed_keys)
    own = None if kept is None else _read(kept, evidence, trusted, listed_keys)
    for given in (own, last):
        if given is not None:
            check_recorded(given.promise, proven.opened_root, proven.round)
    answered = 0 if last is None else last.sequence
    if own is not None and own.sequence > answered:
        raise VerificationFailed(
            f"you kept the receipt of answer {own.sequence}, the bundle has {answered} answers"
        )
    if last is not None and own is not None and last.sequence == own.sequence and last.chain != own.chain:
        raise VerificationFailed(f"the bundle has another receipt of answer {own.sequence} than you kept")
    if proven.seal is not None and (proven.commitment is None) != (last is None):
        raise VerificationFailed("what was sealed is not what the receipt says")
    whose = "the custodian's copy, none of your own was given"
    if own is not None:
        whose = f"your own is that of answer {own.sequence}"
    return SessionReceipts(last, own), f"{f'of {answered:,} answers' if answered else 'none'}; {whose}"


def check_asked(
    bundle: Bundle,
    receipts: SessionReceipts,
    proven: ProvenRound,
    own: Sequence[Statement] | None,
    questions: Sequence[OwnQuestions] = (),
) -> tuple[AskedInSession | None, str]:
    """Checks that the statements are those that were committed to, and within the analyst's share.

    Args:
        bundle: The statements and their salt.
        receipts: What `check_session_receipts` returned.
        proven: The session, and the analyst's share of it, on record.
        own: The statements that the analyst remembers; None to compare with none.
        questions: The questions that the analyst remembers, from which some were translated.

    Returns:
        What was asked, None if nothing was; and what it is, for people.

    Raises:
        VerificationFailed: The statements are missing, or others than those committed to, counted or remembered;
            or those of a grant come to another sum than was charged.
        InvalidArgument: A statement cannot be compiled.
        BudgetExhausted: There are more queries than the share allows.
    """
    salt, workload = bundle.evidence.salt, bundle.workload
    if receipts.last is None:
        if salt is not None or workload is not None:
            raise VerificationFailed("nothing was answered, but there are statements")
        if own is not None or questions:
            raise VerificationFailed("nothing of yours was answered, but you say that you asked")
        return None, f"none{check_spending((), proven)}"
    if salt is None or workload is None:
        raise VerificationFailed("there are answers, but not the statements, or not their salt")
    if proven.seal is not None and workload_commitment(salt, workload) != proven.commitment:
        raise VerificationFailed("the statements are others than those committed to")
    share, answered = proven.share.share, receipts.last.sequence
    compiled = compile_asked(workload, proven.schema, share.statements)
    statements, slots = asked_from_bytes(workload)
    if len(statements) != answered:
        raise VerificationFailed(f"there are {len(statements):,} statements, and a receipt of {answered:,} answers")
    if compiled.query_count > share.queries:
        raise BudgetExhausted(f"{compiled.query_count:,} queries were asked, your share allows {share.queries:,}")
    if own is not None and _encoded(own) != _encoded(sent_from_bytes(each).statement for each in statements):
        raise VerificationFailed("the statements are others than yours")
    _check_slots(slots, proven)
    asked = AskedInSession(statements, slots, tuple(each.query_count for each in compiled.statements), salt)
    whose = "not compared with statements of your own" if own is None else "the same as your own"
    translated = check_session_questions(statements, salt, questions)
    paid = check_spending(statements, proven)
    return asked, f"{answered:,} statements, {asked.query_count:,} queries{paid}; {whose}{translated}"


def check_live_answers(
    evidence: Evidence,
    receipts: SessionReceipts,
    asked: AskedInSession,
    results: Results | None,
    proven: ProvenRound,
) -> str:
    """Checks that the released answers are those that were given while the session was open.

    A released answer that differs from the live one, or has another slot, breaks the chain from there on. A grant's
    answers must have the noise that was paid for, too.

    Args:
        evidence: Whose session it was.
        receipts: What `check_session_receipts` returned.
        asked: What `check_asked` returned.
        results: The released answers; None where nothing was released.
        proven: The session on record.

    Returns:
        What was compared, for people.

    Raises:
        VerificationFailed: The receipts are not of these answers.
    """
    if results is None:
        return "not compared with the live answers: nothing was released"
    if len(results) != asked.query_count:
        raise VerificationFailed(f"there are {len(results):,} answers to {asked.query_count:,} queries")
    check_noise(asked.statements, asked.queries, results, proven)
    given = [
        (receipt, whose)
        for receipt, whose in ((receipts.own, "your own receipt"), (receipts.last, "the receipt in the bundle"))
        if receipt is not None
    ]
    chain = chain_start(evidence.deployment, evidence.round_id, evidence.analyst, asked.salt)
    first = 0
    for i, (statement, slot, count) in enumerate(
        zip(asked.statements, asked.slots, asked.queries, strict=True), start=1
    ):
        cells = slice(first, first := first + count)
        chain = chain_step(chain, i, slot, statement, results.answers[cells])
        for receipt, whose in given:
            if receipt.sequence == i and receipt.chain != chain:
                problem = f"{whose} of answer {i} is of other statements, slots or answers than are released"
                raise VerificationFailed(f"{problem}: the live answers differ")
    return f"the first {given[0][0].sequence:,} are the live ones, by {given[0][1]}"


def _check_slots(slots: Sequence[int], proven: ProvenRound) -> None:
    """Slots ascend (`compile_asked`), are within the session's length, and are of the analyst's own share."""
    session = proven.round.session
    assert session is not None
    length, shares, slotted = session.length, session.shares, session.turn_seconds > 0
    if proven.place >= shares:
        raise VerificationFailed(f"the session has {shares} shares, but yours is number {proven.place + 1}")
    if slots[-1] >= length * (shares if slotted else 1):
        raise VerificationFailed(f"the slot {slots[-1]} is beyond the session's length")
    for slot in slots if slotted else ():
        if slot % shares != proven.place:
            raise VerificationFailed(f"the slot {slot} is another share's")


def _encoded(statements: Iterable[Statement]) -> list[bytes]:
    return [statement_to_bytes(each) for each in statements]


def _read(
    envelope: bytes, evidence: Evidence, trusted: Sequence[VerifierKey], listed_keys: Sequence[VerifierKey]
) -> SessionReceiptPayload:
    receipt = SessionReceiptPayload.from_bytes(open_envelope(envelope, SESSION_RECEIPT_TYPE, trusted, listed_keys))
    about = (receipt.deployment, receipt.session, receipt.analyst)
    if about != (evidence.deployment, evidence.round_id, evidence.analyst):
        raise VerificationFailed(f"a receipt is of {receipt.analyst} in session {receipt.session}")
    return receipt
