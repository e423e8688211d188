"""One analyst's stream in one session."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import datetime

from equipoise.errors import WrongState
from equipoise_server.rounds.context import Context
from equipoise_server.rounds.state_machine import closed
from equipoise_server.sessions import answer_store
from equipoise_server.sessions.answer_journal import CLOSED
from equipoise_server.sessions.answer_store import StoredAnswer
from equipoise_server.sessions.session_loop import SessionLoop


class Attachment:
    """What one stream may do. `salt`: the one in force; `answered`: how many answers were due when it was attached.

    `open`: statements were still taken then. `ended` ends when no more is answered: with None where the session is
    closed, with an error where the stream was attached elsewhere or the session cannot go on.
    """

    def __init__(
        self,
        context: Context,
        session_id: str,
        analyst: str,
        answered: int,
        salt: bytes,
        loop: SessionLoop | None,
        close_time: datetime | None,
    ) -> None:
        self.answered = answered
        self.salt = salt
        self.open = loop is not None and not closed(close_time, context.clock())
        self._context = context
        self._id = session_id
        self._analyst = analyst
        self._loop = loop
        if loop is None:
            self.ended: Future[None] = Future()
            self.ended.set_result(None)
        else:
            self.ended = loop.attach(analyst)

    def stored(self, after: int, limit: int) -> list[StoredAnswer]:
        """At most `limit` answers after a sequence number, in order, as far as they are due."""
        with self._context.store.read() as connection:
            return answer_store.due_after(connection, self._id, self._analyst, after, limit, self._context.clock())

    def ask(self, sequence: int, statement: bytes) -> Future[StoredAnswer]:
        """Ask a statement, after checking it; the future ends when the answer is stored and due.

        Raises `InvalidArgument` naming `statement...`, `BudgetExhausted` beyond the share, `WrongState` where
        nothing is taken any more, `AlreadyExists` where this sequence number has another statement, `OutOfRange`
        beyond the next one, `Unavailable`, `DataLoss`.
        """
        if self._loop is None:
            raise WrongState(CLOSED)
        return self._loop.ask(self._analyst, self.ended, sequence, statement)

    def detach(self) -> None:
        """Let go of the stream. What was not taken yet is forgotten. Does not block."""
        if self._loop is not None:
            self._loop.detach(self._analyst, self.ended)
