"""What runs in a session's own process: it holds the table and the mechanism's session, and answers.

A session is a function of (seed, data, parameters, statements so far). So nothing is checkpointed: a worker that
dies is started again and asked once more what had been asked.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from equipoise.queries.schema import Schema
from equipoise.wire.session_workload import compile_statement
from equipoise_server.mechanisms.interface import Answers, Plan, PublicParameters
from equipoise_server.mechanisms.online.interface import Session
from equipoise_server.mechanisms.registry import session_mechanism
from equipoise_server.rounds.seeds import bound_seed
from equipoise_server.rounds.worker import Failed, end_with_parent, failure, load_data


@dataclass(frozen=True)
class SessionJob:
    """Everything a session depends on besides its statements. `schema` is JSON, `seed` as it was committed to.

    `stops`: nothing is answered any more once the updates are used up.
    """

    session_id: str
    table: Path
    schema: str
    setting: PublicParameters
    plan: Plan
    seed: bytes = field(repr=False)
    data_digest: bytes
    stops: bool


@dataclass(frozen=True)
class Question:
    """A statement's exact bytes, and its slot."""

    slot: int
    statement: bytes


Reply = list[Answers] | Failed


def serve_session(pipe: Connection, job: SessionJob) -> None:
    """The worker process's main function: answers lists of questions over `pipe`, in ascending slots.

    The answers are fewer than the questions where the session stopped in between; `Failed` ends the process.
    """
    threading.Thread(target=end_with_parent, daemon=True).start()
    # Where the server lets go of the pipe nobody waits for anything.
    with pipe, suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            schema = Schema.from_json(job.schema)
            session = _started(job, schema)
            while True:
                questions: Sequence[Question] = pipe.recv()
                pipe.send(list(_answers(session, schema, questions, job.stops)))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except Exception as error:
            pipe.send(failure(error))


def _started(job: SessionJob, schema: Schema) -> Session:
    data = load_data(job.table, schema, job.setting.records, job.data_digest)
    # No auditor adds to the seed of a session, which answers as soon as it is open.
    seed = bound_seed(job.seed, None, data.digest, job.setting, job.plan)
    return session_mechanism(job.plan.mechanism).start(job.setting, job.plan, data.counts, seed)


def _answers(session: Session, schema: Schema, questions: Sequence[Question], stops: bool) -> Iterator[Answers]:
    for question in questions:
        if stops and session.used_up_at(question.slot):
            return
        yield session.answer(question.slot, compile_statement(question.statement, schema))
