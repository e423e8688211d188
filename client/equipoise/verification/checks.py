"""The checks of a bundle, numbered once.

They need no network, server or private data. They trust the custodian's public key, and what the analyst kept.

A verification returns nothing: it tells of each check that holds, in order, and raises `CheckFailed` at the first
that does not. `docs/verification.md` says for each number what it means and what it does not prove.

Formal guarantee: a bundle that passes does not pass with any bit changed, unless a hash collides or a signature is
forged. Every part is signed, or hashed into what is signed, or has to be what another part says, and each has one
encoding.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from equipoise.errors import BudgetExhausted, DataLoss, InvalidArgument, VerificationFailed
from equipoise.queries.statements import Statement
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.records.admitted_losses import AdmittedLosses
from equipoise.records.bundle import Bundle
from equipoise.records.evidence import log_origin
from equipoise.records.proven_round import ProvenRound, check_inclusion, check_openings, proven_round
from equipoise.records.signed_notes import Checkpoint, VerifierKey, open_checkpoint
from equipoise.verification.answer_checks import (
    check_charge,
    check_intervals,
    check_recomputed,
    read_stream,
    read_synopsis,
)
from equipoise.verification.log_history import EarlierCheckpoint, Memory, check_history, check_signers
from equipoise.verification.question_checks import OwnQuestions, check_round_questions
from equipoise.verification.session_checks import (
    AskedInSession,
    SessionReceipts,
    check_asked,
    check_live_answers,
    check_session_receipts,
)
from equipoise.verification.workload_checks import check_receipt, check_workload


class Check(IntEnum):
    """The checks, in the order in which they are made. Numbers are never used again for another."""

    FORMAT = 1
    CHECKPOINT = 2
    LOG = 3
    ITEMS = 4
    ROUND = 5
    RECEIPT = 6
    WORKLOAD = 7
    STREAM = 8
    INTERVALS = 9
    SYNOPSIS = 10
    ANSWERS = 11
    CHARGE = 12
    HISTORY = 13

    @property
    def title(self) -> str:
        """What is checked, for people."""
        return _TITLES[self]


_TITLES = {
    Check.FORMAT: "the file is whole and in its one form",
    Check.CHECKPOINT: "the log's checkpoint is signed by the custodian",
    Check.LOG: "the round's records are in the log, in order",
    Check.ITEMS: "every item opens to its record, at its place",
    Check.ROUND: "the records are of one dataset, one round and one analyst",
    Check.RECEIPT: "the receipt is signed, and for the terms on record and the workload that was sealed",
    Check.WORKLOAD: "the workload is the one committed to, and within the share",
    Check.STREAM: "the results are complete and unaltered",
    Check.INTERVALS: "every answer carries the promised interval",
    Check.SYNOPSIS: "the synopsis is the one committed to",
    Check.ANSWERS: "the synopsis gives the answers that are said to come from it",
    Check.CHARGE: "the charge is the announced cost, and that is the sum of its parts",
    Check.HISTORY: "the log has only grown since the checkpoint held before",
}


class CheckFailed(VerificationFailed):
    """A check that does not hold.

    Attributes:
        check: which check.
        problem: what was found.
    """

    def __init__(self, check: Check, problem: str) -> None:
        super().__init__(f"{check.value} FAILED {check.title}: {problem}")
        self.check = check
        self.problem = problem


@dataclass(frozen=True)
class VerifierInputs:
    """What the verifier brings: the keys that it trusts, and what it has kept itself.

    Attributes:
        keys: the custodian's keys, from a source that the verifier trusts.
        receipt: the newest envelope that the analyst received; in a session, with an answer.
        statements: what the analyst remembers to have asked, in order.
        checkpoint: one that the verifier saw at another time.
        questions: those that the analyst remembers to have asked, and that were answered.
        losses: what the custodian shows where its log does not contain the checkpoint.
        accepted: of the logs whose loss the verifier has accepted the sizes, by their roots in hexadecimal.
    """

    keys: Sequence[VerifierKey]
    receipt: bytes | None = None
    statements: Sequence[Statement] | None = None
    checkpoint: EarlierCheckpoint | None = None
    questions: Sequence[OwnQuestions] = ()
    losses: AdmittedLosses | None = None
    accepted: Mapping[str, int] = field(default_factory=dict)


WITH_NONCE = "an auditor's nonce is in the noise's seed"
WITHOUT_NONCE = "the custodian drew the noise's seed alone: no auditor gave a nonce"
NO_ANSWERS = "none: the round was aborted, or no workload of the analyst's was in it"
OF_A_HYPOTHESIS = "none: a session answers from its hypothesis, and releases no synopsis"

Passed = Callable[[Check, str], None]
Found = Callable[[str], None]


@dataclass(frozen=True)
class _Opened:
    """A bundle whose records are proven to be the log's. `listed_keys`: the keys that it names."""

    bundle: Bundle
    listed_keys: Sequence[VerifierKey]
    checkpoint: Checkpoint
    proven: ProvenRound


def verify(data: bytes, inputs: VerifierInputs, passed: Passed) -> None:
    """Verifies a bundle offline, check by check.

    Args:
        data: the bytes of the bundle's file.
        inputs: the keys that the verifier trusts, and what it has kept itself.
        passed: called for each check that holds, in order, with what was found.

    Raises:
        CheckFailed: a check, which is the first, does not hold.
    """
    opened = _open(data, inputs, passed)
    _compare(opened, inputs, passed)
    with _numbered(Check.HISTORY, passed) as report:
        evidence = opened.bundle.evidence
        memory = Memory(inputs.checkpoint, inputs.losses, inputs.accepted)
        report(check_history(evidence, opened.checkpoint, memory, inputs.keys, opened.listed_keys))
        check_signers(evidence, opened.listed_keys)


def _open(data: bytes, inputs: VerifierInputs, passed: Passed) -> _Opened:
    """Returns whether the records are the log's, and one round's."""
    with _numbered(Check.FORMAT, passed) as report:
        bundle = Bundle.from_bytes(data)
        evidence = bundle.evidence
        report(f"{len(data):,} bytes")
    with _numbered(Check.CHECKPOINT, passed) as report:
        listed_keys = [VerifierKey.from_text(line) for line in evidence.keys]
        if list(evidence.keys) != sorted(set(evidence.keys)):
            raise VerificationFailed("the listed keys are not in order, or one is listed twice")
        checkpoint = open_checkpoint(evidence.checkpoint, inputs.keys, listed_keys)
        if checkpoint.origin != log_origin(evidence.deployment):
            raise VerificationFailed(f"the log is {checkpoint.origin}, not that of {evidence.deployment}")
        report(f"{checkpoint.origin}, {checkpoint.size:,} leaves")
    with _numbered(Check.LOG, passed) as report:
        check_inclusion(evidence.records, checkpoint)
        report(f"leaves {', '.join(str(record.index) for record in evidence.records)}")
    with _numbered(Check.ITEMS, passed) as report:
        check_openings(evidence.records)
        report(f"{sum(len(record.items) for record in evidence.records)} items of {len(evidence.records)} records")
    with _numbered(Check.ROUND, passed) as report:
        proven = proven_round(evidence)
        where = f"{evidence.analyst} in round {evidence.round_id} on {proven.dataset.dataset}"
        report(f"{where}: {proven.dataset.persons.in_words()}")
        if proven.seal is not None:
            report(WITHOUT_NONCE if proven.seal.nonce is None else WITH_NONCE)
    return _Opened(bundle, listed_keys, checkpoint, proven)


def _compare(opened: _Opened, inputs: VerifierInputs, passed: Passed) -> None:
    """Whether what was asked, delivered and charged is what the records say."""
    bundle, proven = opened.bundle, opened.proven
    given = (bundle.evidence, proven, inputs.receipt, inputs.keys, opened.listed_keys)
    receipts: SessionReceipts | None = None
    workload: CompiledWorkload | None = None
    asked: AskedInSession | None = None
    with _numbered(Check.RECEIPT, passed) as report:
        if proven.round.session is None:
            receipt, said = check_receipt(*given)
        else:
            receipts, said = check_session_receipts(*given)
        report(said)
    with _numbered(Check.WORKLOAD, passed) as report:
        if receipts is None:
            workload, said = check_workload(bundle, receipt, proven, inputs.statements)
            if receipt is not None and receipt.questions is not None:
                said = f"{said}; {check_round_questions(bundle, receipt, inputs.questions)}"
        else:
            asked, said = check_asked(bundle, receipts, proven, inputs.statements, inputs.questions)
        report(said)
    queries = sum(each.query_count for each in (workload, asked) if each is not None)
    with _numbered(Check.STREAM, passed) as report:
        answers = read_stream(bundle.stream, proven)
        report(NO_ANSWERS if answers is None else f"{len(bundle.stream):,} messages, {len(answers):,} answers")
        if receipts is not None and asked is not None:
            report(check_live_answers(bundle.evidence, receipts, asked, answers, proven))
    with _numbered(Check.INTERVALS, passed) as report:
        report(NO_ANSWERS if answers is None else check_intervals(answers, queries, proven))
    with _numbered(Check.SYNOPSIS, passed) as report:
        synopsis = read_synopsis(bundle.synopsis, proven)
        report("none was released" if synopsis is None else f"{len(synopsis):,} records")
    with _numbered(Check.ANSWERS, passed) as report:
        if answers is None:
            report(NO_ANSWERS)
        elif proven.round.session is not None:
            report(OF_A_HYPOTHESIS)
        else:
            report(check_recomputed(answers, workload, synopsis))
    with _numbered(Check.CHARGE, passed) as report:
        report(check_charge(proven))


@contextlib.contextmanager
def _numbered(check: Check, passed: Passed) -> Iterator[Found]:
    """Everything that goes wrong within is this check's failure; else `passed` gets what was found last."""
    findings: list[str] = []
    try:
        yield findings.append
    except (DataLoss, InvalidArgument, BudgetExhausted) as error:
        raise CheckFailed(check, error.message) from None
    except (ValueError, ArithmeticError) as error:
        raise CheckFailed(check, str(error)) from None
    passed(check, "; ".join(findings))
