"""The answers of one open session in the store: stored before they are sent, and the same when computed again.

An answer is sent only when it is stored and the guard counts it. So after a crash at any point, a statement either
was never answered, and can be asked again, or has one answer for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from equipoise.errors import AlreadyExists, DataLoss, EquipoiseError, Unavailable, WrongState
from equipoise.model.results import Answers
from equipoise.model.rounds import RoundState
from equipoise.model.times import to_microseconds
from equipoise.records.receipts import SESSION_RECEIPT_TYPE, SessionReceiptPayload, chain_start, chain_step
from equipoise.wire.results import answers_from_chunk, answers_to_chunk
from equipoise.wire.session_workload import wanted_of
from equipoise_server.computation.session import Question
from equipoise_server.ledger.guard_comparison import count_answers
from equipoise_server.rounds.context import Context
from equipoise_server.rounds.store.rounds import read_audit_nonce
from equipoise_server.rounds.store.step_records import recorded_promise
from equipoise_server.sessions import answer_store
from equipoise_server.sessions.answer_store import StoredAnswer
from equipoise_server.sessions.grant_spending import GrantSpending
from equipoise_server.sessions.open_session import OpenSession
from equipoise_server.sessions.pending_statements import OTHER_STATEMENT, AnalystProgress, PendingStatement
from equipoise_server.storage.operations import committing
from equipoise_server.workers.session_process import NOT_NOW, SessionProcess

CLOSED = "the session takes no more statements"
DAMAGED = "the session's stored answers are damaged"


class NonceChangedError(Exception):
    """The first answers were computed under another auditor's nonce than the one in force."""


class AnswerJournal:
    """The stored answers of one session. Callers' threads may read; only the thread of the session's loop appends.

    `remember` tells the guard how many answers the store has given. `first_slot` is the first slot after all slots
    that were answered before.
    """

    def __init__(self, session: OpenSession, context: Context, remember: Callable[[int], None]) -> None:
        self._session = session
        self._id = session.record.id
        self._context = context
        self._remember = remember
        self._places = {share.analyst: index for index, share in enumerate(session.record.terms.shares)}
        with context.store.read() as connection:
            _, self._answered = answer_store.standing(connection, self._id)
            self._promise = recorded_promise(connection, self._id)
            self.first_slot = answer_store.count_slots(connection, self._id)

    def spending(self) -> GrantSpending:
        """Return what all stored statements have spent of a grant; nothing in any other session.

        Raises:
            DataLoss: the stored costs are not those that the statements come to.
        """
        account = self._session.unspent()
        with self._context.store.read() as connection:
            if account is None:
                if answer_store.spent(connection, self._id):
                    raise DataLoss(DAMAGED)
                return GrantSpending()
            for statement, cost in answer_store.costs(connection, self._id):
                try:
                    counted = account.pay(
                        wanted_of(statement, self._session.schema, standing=self._session.standing)
                    )
                except EquipoiseError:
                    raise DataLoss(DAMAGED) from None
                if counted != cost:
                    raise DataLoss(DAMAGED)
        return GrantSpending(account)

    def progress(self, analyst: str) -> AnalystProgress:
        """Return an analyst's progress as stored. Raises `DataLoss` where the analyst never attached."""
        progress = self._unused(analyst)
        with self._context.store.read() as connection:
            last = answer_store.last_of(connection, self._id, analyst)
            size = answer_store.size_of(connection, self._id, analyst)
        if last is not None:
            chunk = answers_from_chunk(last.chunk)
            progress.advance(last, chunk.first_query + len(chunk.answers))
            progress.size = size
        return progress

    def answer_to(self, analyst: str, sequence: int, statement: bytes) -> StoredAnswer:
        """Return the stored answer to one statement of an analyst.

        Raises:
            AlreadyExists: the sequence number was used for another statement.
            DataLoss: the store has no such answer.
        """
        with self._context.store.read() as connection:
            stored = answer_store.answer_to(connection, self._id, analyst, sequence)
        if stored is None:
            raise DataLoss(DAMAGED)
        if stored.statement != statement:
            raise AlreadyExists(OTHER_STATEMENT)
        return stored

    def compute_again(self, process: SessionProcess) -> None:
        """Ask the worker all answered statements again. Raises `DataLoss` unless the answers are the same."""
        progress: dict[str, AnalystProgress] = {}
        answered = slots = 0
        while page := self._page(slots):
            answers = process.answers([Question(stored.slot, stored.statement) for stored in page])
            if len(answers) != len(page):
                raise DataLoss(DAMAGED)
            for stored, computed in zip(page, answers, strict=True):
                own = progress.get(stored.analyst) or self._unused(stored.analyst)
                progress[stored.analyst] = own
                again = self._next(own, stored.slot, stored.statement, stored.due, computed, stored.cost)
                if (again.sequence, again.chunk, again.chain) != (stored.sequence, stored.chunk, stored.chain):
                    raise DataLoss(DAMAGED)
                own.advance(again, len(computed.values))
            answered += len(page)
            slots = page[-1].slot + 1
        if answered != self._answered:
            raise DataLoss(DAMAGED)

    def append(
        self,
        statements: Sequence[tuple[int, PendingStatement]],
        answers: Sequence[Answers],
        progress: Mapping[str, AnalystProgress],
    ) -> list[StoredAnswer]:
        """Store the next answers with their receipts. The answers may be sent once this method has returned.

        Args:
            statements: The statements, each with its slot, in ascending order of slots.
            answers: The answer to each statement, in the same order.
            progress: The progress of the analysts who asked the statements, before these answers; not changed.

        Returns:
            The stored answers, in the same order.

        Raises:
            WrongState: The session was sealed or aborted.
            Unavailable: Another server has answered the session, the clock is not trusted, or the guard cannot
                count the answers.
            NonceChangedError: An auditor has set the nonce since the worker was started.
        """
        with committing(self._context.store, "answers") as connection:
            due = self._session.schedule.due(self._context.watch.now())
            self._check_open(connection)
            if read_audit_nonce(connection, self._id) != self._session.job.audit_nonce:
                raise NonceChangedError
            stored: list[StoredAnswer] = []
            after = {analyst: replace(own) for analyst, own in progress.items()}
            for (slot, pending), computed in zip(statements, answers, strict=True):
                own = after[pending.analyst]
                answer = self._next(own, slot, pending.statement, due, computed, pending.cost)
                stored.append(self._receipted(connection, answer))
                own.advance(answer, pending.cells)
            answer_store.insert(connection, self._id, self._answered, stored)
            answer_count = count_answers(connection)
        # The guard must count the answers before they are sent. Otherwise an older copy of the store could answer
        # again.
        self._remember(answer_count)
        self._answered += len(stored)
        return stored

    def _unused(self, analyst: str) -> AnalystProgress:
        """Return the progress of an analyst who has asked nothing. Raises `DataLoss` without a stored salt."""
        index = self._places[analyst]
        share = self._session.record.terms.shares[index]
        with self._context.store.read() as connection:
            salt = answer_store.salt_in_force(connection, self._id, analyst)
        if salt is None:
            raise DataLoss(DAMAGED)
        start = chain_start(self._context.deployment, self._id, analyst, salt)
        return AnalystProgress(share, index, 0, 0, start)

    def _page(self, slot: int) -> list[StoredAnswer]:
        with self._context.store.read() as connection:
            return answer_store.from_slot(connection, self._id, slot)

    def _next(
        self,
        progress: AnalystProgress,
        slot: int,
        statement: bytes,
        due: datetime,
        computed: Answers,
        cost: int,
    ) -> StoredAnswer:
        """Return the analyst's next answer, without its receipt."""
        sequence = progress.stored + 1
        chunk = answers_to_chunk(self._id, sequence, progress.cells, computed)
        chain = chain_step(progress.chain, sequence, slot, statement, computed)
        return StoredAnswer(progress.share.analyst, sequence, slot, due, statement, chunk, b"", chain, cost)

    def _receipted(self, connection: Connection, answer: StoredAnswer) -> StoredAnswer:
        """Return the answer with its receipt. The receipt's time is the due time, which says nothing of others."""
        payload = SessionReceiptPayload(
            self._context.deployment,
            self._id,
            answer.analyst,
            answer.sequence,
            answer.chain,
            to_microseconds(answer.due),
            self._promise,
        )
        envelope = self._context.signer.receipt(connection, SESSION_RECEIPT_TYPE, payload.to_bytes())
        return replace(answer, envelope=envelope)

    def _check_open(self, connection: Connection) -> None:
        state, answered = answer_store.standing(connection, self._id)
        if state != RoundState.OPEN.value:
            raise WrongState(CLOSED)
        if answered != self._answered:
            # Another server, which took this one for dead, has answered.
            raise Unavailable(NOT_NOW)
