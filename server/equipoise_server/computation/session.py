"""What a session computes: answers in the order of its slots, and that a run gives those that were given before.

A session is a function of (seed, data, parameters, statements so far). So nothing is checkpointed: a worker that
dies is started again and asked once more what had been asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from equipoise.errors import DataLoss
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.schema import Schema
from equipoise.queries.session_workload import SessionWorkload
from equipoise.records.receipts import chain_step
from equipoise.wire.outline import asked_from_bytes
from equipoise.wire.session_workload import compile_statement
from equipoise_server.computation.data import load_data
from equipoise_server.computation.seed import bound_seed
from equipoise_server.datasets.source import Source
from equipoise_server.mechanisms.interface import Answers, PublicParameters
from equipoise_server.mechanisms.online.interface import Session
from equipoise_server.mechanisms.registry import session_mechanism


@dataclass(frozen=True)
class SessionJob:
    """Everything a session depends on besides its statements. `schema` is JSON, `seed` as it was committed to.

    `audit_nonce`: the auditor's part of the randomness, None without one; it is fixed with the first answer.
    `stops`: nothing is answered any more once the updates are used up.
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
    """What binds one analyst's answers: the chain before the first one, and after the last."""

    start: bytes
    end: bytes


def start_session(job: SessionJob, schema: Schema) -> Session:
    """A session that has answered nothing. Raises as `load_data` does."""
    data = load_data(job.source, schema, job.setting.records, job.data_digest)
    seed = bound_seed(job.seed, job.audit_nonce, data.digest, job.setting, job.plan, {})
    return session_mechanism(job.plan.mechanism).start(job.setting, job.plan, data.counts, seed)


def answer(session: Session, schema: Schema, questions: Sequence[Question], stops: bool) -> Iterator[Answers]:
    """The answers to statements in ascending slots, up to where the session stops."""
    for question in questions:
        if stops and session.used_up_at(question.slot):
            return
        compiled = compile_statement(question.statement, schema)
        yield session.answer(question.slot, compiled, question.statement)


def check_live_answers(live: AnswerChain, workload: bytes, questions: SessionWorkload, answers: Answers) -> None:
    """Raises `DataLoss` unless these answers to a workload are what was told while the session was open."""
    chain, first = live.start, 0
    statements, slots = asked_from_bytes(workload)
    for sequence, (statement, slot, compiled) in enumerate(
        zip(statements, slots, questions.statements, strict=True), start=1
    ):
        cells = slice(first, first + compiled.query_count)
        first = cells.stop
        chain = chain_step(
            chain, sequence, slot, statement, answers.values[cells], answers.methods[cells], answers.bounds[cells]
        )
    if chain != live.end:
        raise DataLoss("the final run of the session does not reproduce the answers that were given")
