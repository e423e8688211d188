"""Computes a session's answers in the order of its slots, and checks that a run reproduces earlier answers.

A session is a function of (seed, data, parameters, statements so far). So a session has no checkpoints: if a worker
dies, another one is asked all earlier statements again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from equipoise.errors import DataLoss
from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.schema import Schema
from equipoise.queries.session_workload import SessionWorkload
from equipoise.records.receipts import chain_step
from equipoise.wire.outline import asked_from_bytes
from equipoise.wire.session_workload import compile_offered
from equipoise_server.computation.data import Countable, data_for
from equipoise_server.computation.seed import bound_seed
from equipoise_server.datasets.source import Source
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.interface import Session
from equipoise_server.mechanisms.registry import session_mechanism


@dataclass(frozen=True)
class SessionJob:
    """The inputs of a session, except its statements and the table itself.

    `schema` is JSON, and `seed` the committed seed. `audit_nonce` is the auditor's part of the randomness, which
    the first answer fixes; None without. `stops` says whether the session stops once its updates are used up.
    """

    session_id: str
    source: Source
    schema: str
    setting: PublicParameters
    plan: MechanismPlan
    seed: bytes = field(repr=False)
    data_digest: bytes
    stops: bool
    audit_nonce: bytes | None = None


@dataclass(frozen=True)
class Question:
    """A statement's exact bytes, and its slot."""

    slot: int
    statement: bytes


@dataclass(frozen=True)
class AnswerChain:
    """The hash chain that binds one analyst's answers: its value before the first and after the last answer."""

    start: bytes
    end: bytes


def start_session(job: SessionJob, schema: Schema, table: Countable | None = None) -> Session:
    """Start a session, which has answered nothing yet.

    Args:
        job: the session's inputs.
        schema: the same as the job's.
        table: what the table is read from; None: from the job's source.

    Raises:
        EquipoiseError: as `data_for` raises.
    """
    data = data_for(job.plan, table or job.source, schema, job.setting, job.data_digest)
    seed = bound_seed(job.seed, job.audit_nonce, data.digest, job.setting, job.plan, {})
    return session_mechanism(job.plan.mechanism).start(job.setting, job.plan, data.counts, seed)


def answer(session: Session, schema: Schema, questions: Sequence[Question], stops: bool) -> Iterator[Answers]:
    """Yield the answers to statements.

    Args:
        session: A session that has answered nothing in these slots yet.
        schema: The table's schema.
        questions: The statements, in ascending slots.
        stops: Whether the session ends once its mechanism is used up. Else later statements are answered without
            an interval.
    """
    for question in questions:
        if stops and session.used_up_at(question.slot):
            return
        compiled, offer = compile_offered(question.statement, schema)
        yield session.answer(question.slot, compiled, *offer)


def check_live_answers(live: AnswerChain, workload: bytes, questions: SessionWorkload, answers: Answers) -> None:
    """Check that a final run gives one analyst the answers that were given while the session was open.

    Args:
        live: The chain of the analyst's answers, before the first one and after the last one.
        workload: What the analyst asked, as it is stored.
        questions: The same, compiled.
        answers: What the final run answers, in the same order.

    Raises:
        DataLoss: An answer, a slot or a statement differs.
    """
    chain, first = live.start, 0
    statements, slots = asked_from_bytes(workload)
    for sequence, (statement, slot, compiled) in enumerate(
        zip(statements, slots, questions.statements, strict=True), start=1
    ):
        cells = slice(first, first + compiled.query_count)
        first = cells.stop
        chain = chain_step(chain, sequence, slot, statement, answers[cells])
    if chain != live.end:
        raise DataLoss("the final run of the session does not reproduce the answers that were given")
