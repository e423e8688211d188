"""One analyst's stream in one session."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import datetime

from equipoise.errors import WrongState
from equipoise_server.rounds.context import Context
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.state_machine import closed
from equipoise_server.sessions import answer_store
from equipoise_server.sessions.answer_journal import CLOSED
from equipoise_server.sessions.answer_store import StoredAnswer
from equipoise_server.sessions.open_session import due_until
from equipoise_server.sessions.session_loop import SessionLoop


class Attachment:
    """The attachment of one stream to a session.

    Attributes:
        salt: the analyst's salt in force.
        answered: how many of the analyst's answers were due when the stream was attached.
        open: whether the session still accepted statements when the stream was attached.
        ended: a future that ends when no more statements are answered: with None where the session is closed, with
            an error where another stream of the analyst was attached or the session cannot continue.
    """

    def __init__(
        self,
        context: Context,
        record: RoundRecord,
        analyst: str,
        answered: int,
        salt: bytes,
        loop: SessionLoop | None,
        now: datetime,
    ) -> None:
        self.answered = answered
        self.salt = salt
        self.open = loop is not None and not closed(record.terms.close_time, now)
        self._context = context
        self._record = record
        self._analyst = analyst
        self._loop = loop
        if loop is None:
            self.ended: Future[None] = Future()
            self.ended.set_result(None)
        else:
            self.ended = loop.attach(analyst)

    def stored(self, after: int, limit: int) -> list[StoredAnswer]:
        """Return at most `limit` of the answers after a sequence number, in order, of the `answered` ones alone.

        Whoever attaches asks all others again, so one that became due since then would be told twice.
        """
        limit = min(limit, self.answered - after)
        if limit < 1:
            return []
        with self._context.store.read() as connection:
            due = due_until(self._record, self._context.watch.read(connection).reached)
            return answer_store.due_after(connection, self._record.id, self._analyst, after, limit, due)

    def ask(self, sequence: int, statement: bytes) -> Future[StoredAnswer]:
        """Check a statement and ask it.

        Args:
            sequence: the statement's number among the analyst's statements, from 1.
            statement: the serialized statement.

        Returns:
            A future, which ends when the answer is stored and due.

        Raises:
            InvalidArgument: a field of the statement is wrong; its name begins with `statement`.
            BudgetExhausted: the statement exceeds the share.
            TooLarge: the statement, or all of the analyst's statements together, are too large.
            WrongState: the session accepts no more statements, or another stream of the analyst is attached.
            AlreadyExists: the sequence number was used for another statement.
            OutOfRange: the sequence number is beyond the next one.
            Unavailable: this server cannot answer the session now.
            DataLoss: the session's stored answers are damaged.
        """
        if self._loop is None:
            raise WrongState(CLOSED)
        return self._loop.ask(self._analyst, self.ended, sequence, statement)

    def detach(self) -> None:
        """Detach the stream. Statements that were not taken yet are forgotten. Does not block."""
        if self._loop is not None:
            self._loop.detach(self._analyst, self.ended)
