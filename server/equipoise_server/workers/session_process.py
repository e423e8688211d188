"""The server's end of a session's worker process."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from equipoise.errors import DataLoss, Unavailable
from equipoise.model.results import Answers
from equipoise_server.computation.session import Question, SessionJob
from equipoise_server.workers.process import AMONG_CALLS, Failed, start
from equipoise_server.workers.session_worker import EmptySlots, Reply, Request, serve_session

NOT_NOW = "the session cannot be answered now"

log = structlog.get_logger(__name__)


class SessionProcess:
    """A worker process that answers a session. One thread may ask it; any thread may end it."""

    def __init__(self, job: SessionJob, idle_seconds: float) -> None:
        self._session_id = job.session_id
        self._process = start(serve_session, job, f"session-{job.session_id}", AMONG_CALLS, idle_seconds)

    @property
    def process_id(self) -> int | None:
        """The worker's process id."""
        return self._process.pid

    def answers(self, questions: Sequence[Question]) -> list[Answers]:
        """Return the answers in the order of the questions, fewer if the session stops in between.

        Args:
            questions: the statements, in ascending order of slots.

        Raises:
            DataLoss: the table is not the one that was registered.
            Unavailable: the worker has ended, failed or stalled.
        """
        return self._asked(questions)

    def pass_to(self, slot: int) -> None:
        """Have all slots before this one processed that nobody asked in. Raises as `answers` does."""
        self._asked(EmptySlots(slot))

    def _asked(self, request: Request) -> list[Answers]:
        try:
            self._process.send(request)
            reply: Reply = self._process.receive()
        except (EOFError, OSError):
            exit_code = self._process.join()
            event = "session_worker_stalled" if self._process.stalled else "session_worker_ended"
            log.warning(event, session_id=self._session_id, exit_code=exit_code)
            raise Unavailable(NOT_NOW) from None
        if isinstance(reply, Failed):
            # The problem's text may count records. Operators read it when the sealed session cannot be run either.
            log.error("session_worker_failed", session_id=self._session_id, kind=reply.kind)
            raise DataLoss(NOT_NOW) if reply.kind == DataLoss.__name__ else Unavailable(NOT_NOW)
        return reply

    def end(self) -> None:
        """Kill the process. A thread that waits for an answer gets `Unavailable`."""
        self._process.end()

    def close(self) -> None:
        """Kill the process and close the pipe. Only the thread that asks may call this method."""
        self.end()
        self._process.pipe.close()
