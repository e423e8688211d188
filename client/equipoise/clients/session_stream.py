"""What an analyst asks in a session: one statement after the other, each with its answer before the next is needed.

    for answer in client.ask(session_id, statements):
        print(answer.sequence, answer.value, answer.low, answer.high)

Statements are taken from what was given only as there is room for them, so the next one may depend on the answers
so far. A stream that broke goes on where it was: what has an answer already is not asked again.
"""

from __future__ import annotations

import itertools
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from equipoise.clients.connection import Connection
from equipoise.clients.conversation import Conversation
from equipoise.clients.receipt_chain import ReceiptChain
from equipoise.clients.statement_answer import StatementAnswer
from equipoise.errors import (
    DataLoss,
    InvalidArgument,
    Unavailable,
    WrongState,
)
from equipoise.model.rounds import Round
from equipoise.profile.receipt_store import ReceiptHolder, ReceiptStore
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Statement
from equipoise.records.record import SALT_BYTES, questions_commitment
from equipoise.results import Labels, Results
from equipoise.v1 import analyst_pb2, analyst_pb2_grpc
from equipoise.wire.results import answers_from_chunk
from equipoise.wire.statements import statement_to_bytes

_Conversation: TypeAlias = Conversation[analyst_pb2.AskQueriesRequest, analyst_pb2.AskQueriesResponse]


def free(_: Statement) -> int:
    """Return what a statement may cost where nothing is paid."""
    return 0


@dataclass(frozen=True)
class SessionStream:
    """How to ask in one session, as it was `shown` to the analyst before.

    `after`: how many of the analyst's statements were before the first one given; None: all that have an answer.
    `window`: how many statements may be on their way at once. `holder`: whom receipts must be for, and by whom they
    must be signed; None: that is left to `equipoise.verification.checks`. `costs`: what each statement may cost of
    a grant, in units of 10^-12 of rho; 0 in any other session. `questions`: what was understood of those that all
    statements were translated from; None where they were given themselves.
    """

    shown: Round
    schema: Schema
    after: int | None
    window: int
    accept_unprotected: bool
    keepsakes: ReceiptStore | None
    holder: ReceiptHolder | None
    costs: Callable[[Statement], int] = free
    questions: bytes | None = None

    @property
    def session_id(self) -> str:
        """The session's."""
        return self.shown.id

    def answers(
        self,
        connection: Connection,
        service: analyst_pb2_grpc.AnalystServiceStub,
        statements: Iterable[Statement],
    ) -> Iterator[StatementAnswer]:
        """Yields the answers, in order; takes the statements one by one, as the window allows.

        Raises:
            InvalidArgument: `window` is below 1, or `after` below 0. Further errors are those of
                `equipoise.Client.ask`.
        """
        for name, number, least in (("window", self.window, 1), ("after", self.after or 0, 0)):
            if number < least:
                raise InvalidArgument(name, f"must be at least {least}, not {number}")
        chain = ReceiptChain(self.shown, self.after, self.keepsakes, self.holder)
        return _Dialogue(self, chain, iter(statements)).answers(connection, service)


class _Dialogue:
    """The statements that are on their way, and the answers that were received."""

    def __init__(self, stream: SessionStream, chain: ReceiptChain, statements: Iterator[Statement]) -> None:
        self._stream = stream
        self._chain = chain
        self._statements = statements
        self._salt = secrets.token_bytes(SALT_BYTES)
        self._first = stream.after  # so many statements come before the first one given
        self._on_way: deque[tuple[Statement, bytes]] = deque()  # taken, and not answered yet
        self._sent = 0  # the last statement that needs no sending any more
        self._skipped = 0  # so many stored answers are not sent by themselves, but once they are asked for again
        self._sent_anew = False
        self._stored: int | None = None  # how many were answered before

    def answers(
        self, connection: Connection, service: analyst_pb2_grpc.AnalystServiceStub
    ) -> Iterator[StatementAnswer]:
        conversation = connection.converse(service.AskQueries, self._opening)
        try:
            self._attached(conversation.receive(), conversation)
            while self._fill(conversation):
                message = self._next(conversation)
                if message is None:
                    raise WrongState("the session takes no more statements; the rest of yours was not asked")
                if message.WhichOneof("part") == "attached":
                    self._attached(message, conversation)
                elif (answer := self._read(message.answered)) is not None:
                    yield answer
            conversation.finish()
        finally:
            conversation.close()
            self._chain.keep()

    def _next(self, conversation: _Conversation) -> analyst_pb2.AskQueriesResponse | None:
        try:
            return conversation.receive()
        except InvalidArgument as error:
            raise _renamed(error, self._chain.received - (self._first or 0)) from None
        except Unavailable as error:
            kept = f"the {self._chain.received:,} answers so far are kept, and the same again goes on after them"
            raise Unavailable(f"{error.message}; {kept}") from None

    def _opening(self) -> analyst_pb2.AskQueriesRequest:
        after, self._skipped = self._skipped or self._chain.received, 0
        self._sent_anew = after > self._chain.received
        attach = analyst_pb2.AttachSession(
            session_id=self._stream.session_id,
            after_sequence=after,
            commitment_salt=self._salt,
            accept_unprotected=self._stream.accept_unprotected,
        )
        return analyst_pb2.AskQueriesRequest(attach=attach)

    def _attached(
        self,
        message: analyst_pb2.AskQueriesResponse | None,
        conversation: _Conversation,
    ) -> None:
        if message is None or message.WhichOneof("part") != "attached":
            raise DataLoss("the server did not say what was answered so far")
        attached = message.attached
        self._chain.check_count(attached.answered)
        if len(attached.commitment_salt) != SALT_BYTES:
            raise DataLoss("the server did not say which salt is in force")
        self._salt = attached.commitment_salt
        self._sent = self._chain.received if self._sent_anew else attached.answered
        if self._stored is None:
            self._stored = attached.answered
        if self._first is None:
            self._first = attached.answered
        elif not self._chain.known and 0 < self._chain.received < self._sent:
            # Nothing here tells whether those answers are to these statements: the server has to compare them.
            self._skipped = attached.answered
            conversation.close()

    def _fill(self, conversation: _Conversation) -> bool:
        """Takes statements and sends them, as many as may be on their way; whether any answer is to come."""
        first = self._first or 0
        if self._chain.received < first:
            return True
        for statement in itertools.islice(self._statements, self._stream.window - len(self._on_way)):
            number = self._chain.received + len(self._on_way) - first
            self._on_way.append((statement, self._encoded(statement, number)))
        for sequence, (_, data) in enumerate(self._on_way, start=self._chain.received + 1):
            if sequence > self._sent:
                asked = analyst_pb2.AskQueriesRequest.Asked(sequence=sequence, statement=data)
                conversation.send(analyst_pb2.AskQueriesRequest(asked=asked))
                self._sent = sequence
        return bool(self._on_way)

    def _encoded(self, statement: Statement, number: int) -> bytes:
        """A statement's bytes, the same each time, as the session's salt is: a program may start again."""
        questions = self._stream.questions
        commitment = b"" if questions is None else questions_commitment(self._salt, questions)
        try:
            return statement_to_bytes(statement, self._stream.costs(statement), commitment)
        except InvalidArgument as error:
            raise _renamed(error, number) from None

    def _read(self, answered: analyst_pb2.AskQueriesResponse.Answered) -> StatementAnswer | None:
        """One answer, checked; None where it is to a statement from before."""
        stream, columns = self._stream, answers_from_chunk(answered.chunk)
        sequence = self._chain.received + 1
        if (columns.round_id, columns.sequence, answered.sequence) != (stream.session_id, sequence, sequence):
            raise DataLoss("an answer is not the next one of this session")
        if sequence <= (self._first or 0):
            self._chain.check(answered.envelope, answered.slot, None, columns, self._salt, self._stored or 0)
            return None
        statement, data = self._on_way[0]
        labels = Labels(stream.schema, (statement,))
        self._chain.check(answered.envelope, answered.slot, data, columns, self._salt, self._stored or 0)
        if len(columns.answers) != labels.queries:
            raise DataLoss("an answer does not have a row for each cell of its statement")
        self._on_way.popleft()
        results = Results(stream.session_id, columns.answers, labels)
        return StatementAnswer(sequence, answered.slot, statement, results, answered.envelope, answered.cost)


def _renamed(error: InvalidArgument, number: int) -> InvalidArgument:
    """What is refused is called `statement`: here it is one of many."""
    name = "statement"
    if error.field != name and not error.field.startswith(f"{name}."):
        return error
    return InvalidArgument(f"{name}s[{number}]{error.field.removeprefix(name)}", error.problem)
