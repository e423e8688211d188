"""What runs in a session's own process: it holds the mechanism's session, and answers over a pipe."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection

from equipoise.queries.schema import Schema
from equipoise_server.computation.session import Question, SessionJob, answer, start_session
from equipoise_server.mechanisms.interface import Answers
from equipoise_server.workers.process import Failed, end_with_parent, failure

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
            session = start_session(job, schema)
            while True:
                questions: Sequence[Question] = pipe.recv()
                pipe.send(list(answer(session, schema, questions, job.stops)))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except Exception as error:
            pipe.send(failure(error))
