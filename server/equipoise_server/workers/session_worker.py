"""The program of a session's worker process: it holds the mechanism's session, and answers over a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle

from equipoise.model.results import Answers
from equipoise.queries.schema import Schema
from equipoise_server.computation.data import ReadBefore
from equipoise_server.computation.session import Question, SessionJob, answer, start_session
from equipoise_server.workers.process import Failed


@dataclass(frozen=True)
class EmptySlots:
    """All slots before `stop` that were not used: they are processed like others, and never asked in any more."""

    stop: int


Request = Sequence[Question] | EmptySlots
Reply = list[Answers] | Failed


def serve_session(pipe: Connection, job: SessionJob) -> None:
    """Answer lists of questions, in ascending slots, over `pipe` for ever: the worker process's main function.

    What comes first says whether a file with the table's counts follows, which is then read instead of the table.
    There are fewer answers than questions if the session stops in between, and none to empty slots.
    """
    schema = Schema.from_json(job.schema)
    table = ReadBefore(recv_handle(pipe)) if pipe.recv() else None
    session = start_session(job, schema, table)
    while True:
        request: Request = pipe.recv()
        if isinstance(request, EmptySlots):
            session.used_up_at(request.stop)
            pipe.send([])
        else:
            pipe.send(list(answer(session, schema, request, job.stops)))
