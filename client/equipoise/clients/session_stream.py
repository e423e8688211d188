"""What an analyst asks in a session: one statement after the other, each with its answer before the next is needed.

    for answer in client.ask(session_id, statements):
        print(answer.sequence, answer.value, answer.low, answer.high)

Statements are taken from what was given only as there is room for them, so the next one may depend on the answers
so far. A stream that broke goes on where it was: what has an answer already is not asked again.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections import deque
from collections.abc import Iterator
from typing import TypeAlias

from equipoise.clients.asking import Asking, check_least, renamed
from equipoise.clients.connection import Connection
from equipoise.clients.conversation import Conversation
from equipoise.clients.receipt_chain import ReceiptChain
from equipoise.clients.statement_answer import StatementAnswer
from equipoise.errors import (
    AlreadyExists,
    DataLoss,
    InvalidArgument,
    Unavailable,
    WrongState,
)
from equipoise.model.rounds import Round
from equipoise.profile.kept_sql import keep_session_sql
from equipoise.profile.receipt_store import ReceiptHolder, ReceiptStore
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Statement
from equipoise.records.record import SALT_BYTES
from equipoise.results import Labels, Results
from equipoise.v1 import analyst_pb2, analyst_pb2_grpc
from equipoise.wire.results import answers_from_chunk

_Conversation: TypeAlias = Conversation[analyst_pb2.AskQueriesRequest, analyst_pb2.AskQueriesResponse]

MAX_TAKEOVERS = 30  # in a row without an answer, before a grant is left to other programs of the analyst
MAX_PAUSE_MILLISECONDS = 200  # before the next one, at random, so that two programs do not meet again at once


class SessionStream:
    """One analyst's stream in a session: the statements that are on their way, and the answers that were received.

    It can stay open between two times of asking. Only one thread may use it.

    Args:
        connection: on which it is.
        service: of the same connection.
        shown: the session, as it was shown to the analyst before.
        schema: of the session's dataset.
        after: how many of the analyst's statements were before the first one given. None: all that have an answer,
            also those that another program of the analyst asks while this stream is broken off.
        accept_unprotected: whether the session need not protect its analysts from one another.
        keepsakes: where receipts are kept; None: nowhere.
        holder: whom receipts must be for, and by whom they must be signed; None: that is left to
            `equipoise.verification.checks`.
    """

    def __init__(
        self,
        connection: Connection,
        service: analyst_pb2_grpc.AnalystServiceStub,
        shown: Round,
        schema: Schema,
        after: int | None,
        accept_unprotected: bool,
        keepsakes: ReceiptStore | None,
        holder: ReceiptHolder | None,
    ) -> None:
        check_least("after", after or 0, 0)
        self.session_id = shown.id
        self.holder = holder
        self._keepsakes = keepsakes
        self._schema = schema
        self._accept_unprotected = accept_unprotected
        self._chain = ReceiptChain(shown, after, keepsakes, holder)
        self._joins = after is None
        self._of_grant = shown.grant is not None
        self._before = after or 0  # so many answers are not to statements that are on their way, or need not be
        self._salt = secrets.token_bytes(SALT_BYTES)
        self._on_way: deque[tuple[Statement, bytes]] = deque()  # taken, and not answered yet
        self._given = 0  # answers to the statements that are asked now
        self._sent = 0  # the last statement that needs no sending any more
        self._skipped = 0  # so many stored answers are not sent by themselves, but once they are asked for again
        self._sent_anew = False
        self._stored: int | None = None  # how many were answered before
        self._conversation: _Conversation = connection.converse(service.AskQueries, self._opening)

    @property
    def open(self) -> bool:
        """Tells whether statements can still be sent on it, as far as is known here."""
        return self._conversation.open

    def close(self) -> None:
        """Ends the stream. Statements that were sent are still answered; who sends one again gets its answer.

        The newest receipt is kept. Raises `InvalidArgument` naming the file where it cannot be.
        """
        self._conversation.close()
        self._chain.keep()

    def answers(self, asking: Asking, keep: bool = False) -> Iterator[StatementAnswer]:
        """Yields the answers, in order; takes the statements one by one, as the window allows.

        Args:
            asking: what is asked.
            keep: whether the stream stays open once all are answered.

        Raises:
            InvalidArgument: the window is below 1. Further errors are those of `equipoise.Client.ask`.
        """
        check_least("window", asking.window, 1)
        self._given, stays = 0, False
        try:
            yield from self._answers(asking, iter(asking.statements))
            stays = keep
            if not keep:
                self._conversation.finish()
        finally:
            if stays:
                self._chain.keep_soon()
            else:
                self.close()

    def _answers(self, asking: Asking, statements: Iterator[Statement]) -> Iterator[StatementAnswer]:
        if self._stored is None:
            self._attached(self._conversation.receive())
        tries = left = MAX_TAKEOVERS if self._of_grant else 0
        while self._fill(asking, statements):
            try:
                message = self._next()
            except (AlreadyExists, WrongState):
                # Another program of the analyst has taken the grant over, or asks under the same number just now.
                # This one takes it over in turn. Its statement was answered, or it is asked again.
                if not left:
                    raise
                left -= 1
                self.close()
                time.sleep(secrets.randbelow(MAX_PAUSE_MILLISECONDS) / 1000)
                continue
            if message is None:
                raise WrongState("the session takes no more statements; the rest of yours was not asked")
            if message.WhichOneof("part") == "attached":
                self._attached(message)
            elif (answer := self._read(message.answered)) is not None:
                left = tries
                if self._given == 1:
                    self._keep_questions(asking)
                yield answer

    def _keep_questions(self, asking: Asking) -> None:
        """Keeps the questions after their first answer, so that a receipt covers all that is kept."""
        if self._keepsakes is not None and asking.questions is not None:
            commitment = asking.commitment(self._salt)
            keep_session_sql(self._keepsakes.directory, self.session_id, commitment, asking.questions.kept)

    def _next(self) -> analyst_pb2.AskQueriesResponse | None:
        try:
            return self._conversation.receive()
        except InvalidArgument as error:
            raise renamed(error, self._given) from None
        except Unavailable as error:
            kept = f"the {self._chain.received:,} answers so far are kept, and the same again goes on after them"
            raise Unavailable(f"{error.message}; {kept}") from None

    def _opening(self) -> analyst_pb2.AskQueriesRequest:
        after, self._skipped = self._skipped or self._chain.received, 0
        self._sent_anew = after > self._chain.received
        attach = analyst_pb2.AttachSession(
            session_id=self.session_id,
            after_sequence=after,
            commitment_salt=self._salt,
            accept_unprotected=self._accept_unprotected,
        )
        return analyst_pb2.AskQueriesRequest(attach=attach)

    def _attached(self, message: analyst_pb2.AskQueriesResponse | None) -> None:
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
        if self._joins:
            self._before = attached.answered
        elif not self._chain.known and 0 < self._chain.received < self._sent:
            # Nothing here tells whether those answers are to these statements: the server has to compare them.
            self._skipped = attached.answered
            self._conversation.close()

    def _fill(self, asking: Asking, statements: Iterator[Statement]) -> bool:
        """Takes statements and sends them, as many as may be on their way; whether any answer is to come."""
        if self._chain.received < self._before:
            return True
        for statement in itertools.islice(statements, asking.window - len(self._on_way)):
            number = self._given + len(self._on_way)
            self._on_way.append((statement, asking.encoded(statement, self._salt, number)))
        for sequence, (_, data) in enumerate(self._on_way, start=self._chain.received + 1):
            if sequence > self._sent:
                asked = analyst_pb2.AskQueriesRequest.Asked(sequence=sequence, statement=data)
                self._conversation.send(analyst_pb2.AskQueriesRequest(asked=asked))
                self._sent = sequence
        return bool(self._on_way)

    def _read(self, answered: analyst_pb2.AskQueriesResponse.Answered) -> StatementAnswer | None:
        """One answer, checked; None where it is to a statement that was not asked here, or from before."""
        columns = answers_from_chunk(answered.chunk)
        sequence = self._chain.received + 1
        if (columns.round_id, columns.sequence, answered.sequence) != (self.session_id, sequence, sequence):
            raise DataLoss("an answer is not the next one of this session")
        receipt = answered.envelope, answered.slot
        data = self._on_way[0][1] if self._on_way else None
        if sequence <= self._before and not (
            self._joins and self._chain.covers(*receipt, data, columns, self._salt)
        ):
            self._chain.check(*receipt, None, columns, self._salt, self._stored or 0)
            return None
        self._chain.check(*receipt, data, columns, self._salt, self._stored or 0)
        statement = self._on_way[0][0]
        labels = Labels(self._schema, (statement,))
        if len(columns.answers) != labels.queries:
            raise DataLoss("an answer does not have a row for each cell of its statement")
        self._on_way.popleft()
        self._given += 1
        results = Results(self.session_id, columns.answers, labels)
        return StatementAnswer(sequence, answered.slot, statement, results, answered.envelope, answered.cost)
