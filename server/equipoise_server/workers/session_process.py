"""The server's end of a session's worker process."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.reduction import send_handle

import structlog

from equipoise.errors import DataLoss, Unavailable
from equipoise.model.results import Answers
from equipoise_server.computation.session import Question, SessionJob
from equipoise_server.workers.process import AMONG_CALLS, Failed, start
from equipoise_server.workers.session_worker import EmptySlots, Reply, Request, serve_session
from equipoise_server.workers.shared_tables import SharedTable

LOOK_SECONDS = 0.1  # how long an ended worker may be waited for while its table is read
NOT_NOW = "the session cannot be answered now"

log = structlog.get_logger(__name__)


class SessionProcess:
    """A worker process that answers a session. One thread may ask it; any thread may end it.

    `table`: what is read for several sessions; None: the worker reads the table by itself.
    """

    def __init__(self, job: SessionJob, idle_seconds: float, table: SharedTable | None = None) -> None:
        self._session_id, self._table = job.session_id, table
        self._process = start(serve_session, job, f"session-{job.session_id}", AMONG_CALLS, idle_seconds)

    @property
    def process_id(self) -> int | None:
        """The worker's process id."""
        return self._process.pid

    def begin(self) -> None:
        """Have the worker begin, first of all, once its table is there. Raises `Unavailable` if it has ended."""
        while self._table is not None and not self._table.wait(LOOK_SECONDS) and self._process.is_alive():
            pass
        file = None if self._table is None else self._table.file
        try:
            self._process.send(file is not None)
            if file is not None:
                send_handle(self._process.pipe, file, self._process.pid or 0)
        except OSError:
            raise self._gone() from None

    def answers(self, questions: Sequence[Question]) -> list[Answers]:
        """Return the answers in the order of the questions, fewer if the session stops in between.

        Args:
            questions: the statements, in ascending order of slots.

        Raises:
            DataLoss: the table is not the one that was registered.
            Unavailable: the worker has ended, failed or stalled.
        """
        return self._ask(questions)

    def pass_to(self, slot: int) -> None:
        """Have all slots before this one processed that nobody asked in. Raises as `answers` does."""
        self._ask(EmptySlots(slot))

    def _ask(self, request: Request) -> list[Answers]:
        try:
            self._process.send(request)
            reply: Reply = self._process.receive()
        except (EOFError, OSError):
            raise self._gone() from None
        if isinstance(reply, Failed):
            # The problem's text may count records. Operators read it when the sealed session cannot be run either.
            log.error("session_worker_failed", session_id=self._session_id, kind=reply.kind)
            raise DataLoss(NOT_NOW) if reply.kind == DataLoss.__name__ else Unavailable(NOT_NOW)
        return reply

    def _gone(self) -> Unavailable:
        """Wait for the end of the worker, and return what callers are told."""
        exit_code = self._process.join()
        event = "session_worker_stalled" if self._process.stalled else "session_worker_ended"
        log.warning(event, session_id=self._session_id, exit_code=exit_code)
        return Unavailable(NOT_NOW)

    def end(self) -> None:
        """Kill the process. A thread that waits for an answer gets `Unavailable`."""
        self._process.end()

    def close(self) -> None:
        """Kill the process and close the pipe. Only the thread that asks may call this method."""
        self.end()
        self._process.pipe.close()
