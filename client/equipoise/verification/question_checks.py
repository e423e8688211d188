"""The checks of questions: statements commit to those that they were translated from, and to no others.

A commitment tells nothing to whoever has not its questions. The analyst has kept them, and what they come to is
translated again by the verifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from equipoise.errors import VerificationFailed
from equipoise.queries.statements import Statement
from equipoise.records.bundle import Bundle
from equipoise.records.receipts import ReceiptPayload
from equipoise.records.record import questions_commitment
from equipoise.wire.statements import sent_from_bytes, statement_to_bytes

NOT_COMPARED = "the questions that it was translated from are not compared"


@dataclass(frozen=True)
class OwnQuestions:
    """Questions that an analyst remembers to have asked together.

    Attributes:
        understood: what was understood of them, in UTF-8, as `equipoise.questions.questions.Questions.as_comments`
            has it.
        statements: what they come to; None where nothing here can translate them.
        source: what messages call them.
    """

    understood: bytes
    statements: Sequence[Statement] | None = None
    source: str = "your questions"


def check_round_questions(bundle: Bundle, receipt: ReceiptPayload, own: Sequence[OwnQuestions]) -> str:
    """Checks that a receipt which commits to questions commits to those that the analyst remembers.

    That they come to the workload, the caller checks by its statements.

    Args:
        bundle: The workload's salt, which `check_workload` has compared with the receipt.
        receipt: What `check_receipt` returned.
        own: The analyst's questions; none to compare with none.

    Returns:
        What was compared, for people.

    Raises:
        VerificationFailed: The receipt commits to other questions.
    """
    assert bundle.evidence.salt is not None  # `check_workload` needs it
    if not own:
        return NOT_COMPARED
    understood = b"".join(each.understood for each in own)
    if questions_commitment(bundle.evidence.salt, understood) != receipt.questions:
        raise VerificationFailed("the receipt is of other questions than yours, or they were understood otherwise")
    return "translated from your own questions, as the receipt commits to"


def check_session_questions(statements: Sequence[bytes], salt: bytes, own: Sequence[OwnQuestions]) -> str:
    """Checks that what was asked in a session commits to the questions that the analyst remembers.

    Each of these has an answer, so each must be committed to. Statements that commit to others are not compared:
    their questions were kept elsewhere.

    Args:
        statements: The exact bytes of each, which the receipts cover.
        salt: The analyst's, with which the chain of receipts begins.
        own: The questions that the analyst remembers, each asked once or again; none to compare with none.

    Returns:
        What was compared, for people; empty where there is nothing to say.

    Raises:
        VerificationFailed: No statement commits to some of these questions, or one that does is none of those that
            they come to.
    """
    committed: dict[bytes, list[tuple[int, Statement]]] = {}
    for place, data in enumerate(statements):
        sent = sent_from_bytes(data, f"statements[{place}]")
        if sent.questions:
            committed.setdefault(sent.questions, []).append((place, sent.statement))
    compared = 0
    for each in own:
        translated = committed.pop(questions_commitment(salt, each.understood), None)
        if translated is None:
            problem = f"no statement of the session commits to {each.source}"
            raise VerificationFailed(f"{problem}: other questions were asked, or they were understood otherwise")
        meant = None if each.statements is None else {statement_to_bytes(one) for one in each.statements}
        for place, statement in translated:
            if meant is not None and statement_to_bytes(statement) not in meant:
                problem = f"statements[{place}] commits to {each.source}, which come to other statements"
                raise VerificationFailed(f"{problem}: they were translated otherwise")
        compared += len(translated)
    rest = sum(map(len, committed.values()))
    said = [f"{compared:,} translated from your own questions, as they commit to"] if compared else []
    if rest:
        said.append(f"the questions that {rest:,} were translated from are not compared")
    return "".join(f"; {each}" for each in said)
