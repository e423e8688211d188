"""The program of a session's worker process: it holds the mechanism's session, and answers over a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.connection import Connection

from equipoise.model.results import Answers
from equipoise.queries.schema import Schema
from equipoise_server.computation.session import Question, SessionJob, answer, start_session
from equipoise_server.workers.process import Failed

Reply = list[Answers] | Failed


def serve_session(pipe: Connection, job: SessionJob) -> None:
    """Answer lists of questions, in ascending slots, over `pipe` for ever: the worker process's main function.

    There are fewer answers than questions if the session stops in between.
    """
    schema = Schema.from_json(job.schema)
    session = start_session(job, schema)
    while True:
        questions: Sequence[Question] = pipe.recv()
        pipe.send(list(answer(session, schema, questions, job.stops)))
