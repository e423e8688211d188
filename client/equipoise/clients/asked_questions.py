"""How an analyst asks: questions in SQL of rounds and sessions, and statements of sessions, one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from equipoise.clients.connection import Connection
from equipoise.clients.results import ResultsClient
from equipoise.clients.session_stream import SessionStream, StatementAnswer
from equipoise.errors import VerificationFailed
from equipoise.frames import Frame
from equipoise.model.results import Answers
from equipoise.model.rounds import Round
from equipoise.profile.receipt_store import ReceiptHolder, ReceiptStore
from equipoise.queries.statements import Statement
from equipoise.questions.builder import Table
from equipoise.questions.questions import Questions
from equipoise.questions.sql_extra import questions_of
from equipoise.results import Results
from equipoise.v1 import analyst_pb2
from equipoise.wire.outline import asked_from_bytes
from equipoise.wire.rounds import round_from_message
from equipoise.wire.statements import statement_from_bytes
from equipoise.wire.workloads import workload_to_bytes


class AskingClient(ResultsClient):
    """The part of an analyst's client that asks questions and gets tables. Thread-safe.

    Args:
        connection: the connection, which the client closes.
        keepsakes: where signed receipts are kept; None: nowhere, and the caller keeps what it is given.
    """

    def __init__(self, connection: Connection, keepsakes: ReceiptStore | None = None) -> None:
        super().__init__(connection)
        self._keepsakes = keepsakes

    def sql(self, round_id: str, text: str) -> Questions:
        """Translates SQL about the table of a round or session. Nothing is sent but a look at the schema.

        Args:
            round_id: the round or session.
            text: one SELECT or several, parted by `;`.

        Raises:
            InvalidArgument: naming line and column, what cannot be asked, and what to do instead.
        """
        shown = self.round(round_id)
        return questions_of(text, self.schema_of(shown), shown.terms.dataset)

    def table(self, round_id: str) -> Table:
        """Returns the table of a round or session, to put questions together in Python. Only the schema is read.

        Args:
            round_id: the round or session.
        """
        shown = self.round(round_id)
        return Table(self.schema_of(shown), shown.terms.dataset)

    def frames(self, round_id: str, questions: Questions, *, fractions: bool = False) -> tuple[Frame, ...]:
        """Returns a table for each question: of a released round, or by asking them in a session, after all others.

        Args:
            round_id: the round or session.
            questions: those whose statements were submitted to the round.
            fractions: whether counts are shown as fractions of the records.

        Raises:
            VerificationFailed: other statements were submitted to the round. Other errors: as `results` and `ask`.
        """
        shown = self.round(round_id)
        records = self.dataset(shown.terms.dataset, shown.dataset_version).records
        results = None
        if questions.statements and shown.terms.session is not None:
            parts = [each.results.answers for each in self.ask(round_id, questions.statements, after=None)]
            results = Results(round_id, Answers.join(parts))
        elif questions.statements:
            # Answers to other statements would have the same form: what was submitted decides whose they are.
            _, workload = self.evidence(round_id)
            if workload != workload_to_bytes(questions.statements):
                raise VerificationFailed("these are not the questions that were submitted to this round")
            results = self.results(round_id)
        return questions.answers(results, records, fractions=fractions)

    def sessions(self) -> Iterator[Round]:
        """Yields the online sessions in which the caller has a share, newest first."""
        for page in self._connection.pages(
            self._service.ListSessions, lambda token: analyst_pb2.ListSessionsRequest(page_token=token)
        ):
            yield from map(round_from_message, page.sessions)

    def session_statements(self, session_id: str) -> tuple[Statement, ...]:
        """Returns the caller's statements of a session that has ended, in order, as the custodian has stored them.

        They are not verified: `equipoise.verification.checks` compares them with the signed receipts.

        Raises:
            WrongState: the session has not ended.
        """
        _, workload = self.evidence(session_id)
        encoded = () if workload is None else asked_from_bytes(workload)[0]
        return tuple(map(statement_from_bytes, encoded))

    def ask(
        self,
        session_id: str,
        statements: Iterable[Statement],
        *,
        after: int | None = 0,
        window: int = 1,
        accept_unprotected: bool = False,
    ) -> Iterator[StatementAnswer]:
        """Asks statements in a session and yields the answers in the same order, as they come.

        Statements count from the first of the session on. One that was asked before gets its answer again, so the
        same program, started again, continues where it ended. A stream that breaks is resumed. Every receipt is
        checked against statements and answers, and the newest is kept in the profile. A statement that is refused
        was neither answered nor charged, and all answers before it have been yielded.

        Args:
            session_id: the session.
            statements: taken one at a time, as there is room in the window.
            after: how many of the caller's statements come before the first one given; None: all that have an
                answer.
            window: how many statements may be on their way at once. With 1, the next one is taken when all others
                are answered, so it may depend on their answers.
            accept_unprotected: says that the caller knows that the session does not protect its analysts from one
                another; only sessions that do not need it.

        Raises:
            InvalidArgument: a statement is malformed; `field` names it.
            BudgetExhausted: the statement is beyond the caller's share.
            WrongState: the session takes no more statements, is attached to from elsewhere, or does not protect its
                analysts from one another and `accept_unprotected` is false.
            AlreadyExists: another statement was asked before under the same number.
            OutOfRange: `after` is beyond what was answered.
            VerificationFailed: a receipt is not for what was asked and answered.
        """
        holder = self._holder()
        shown = self.round(session_id)
        schema = self.schema_of(shown)
        stream = SessionStream(shown, schema, after, window, accept_unprotected, self._keepsakes, holder)
        yield from stream.answers(self._connection, self._service, statements)

    def _holder(self) -> ReceiptHolder | None:
        """Whom receipts are for, read before anything is sent; None where the caller keeps receipts itself."""
        return None if self._keepsakes is None else self._keepsakes.holder()
