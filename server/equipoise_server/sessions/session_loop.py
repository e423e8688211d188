"""One open session on this server: gathers statements, has them answered, stores the answers, then tells them.

One thread asks the worker and writes to the store; callers' threads only put statements down and wait. An answer
is told when it is stored, when the guard counts it, and not before it is due. So after a crash at any point, a
statement was either never answered, and is asked again, or has one answer for ever.

Where the worker, the store or the guard fails, the session is let go of: everybody who waits is told so, alike. The
next who attaches starts it again from the store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import datetime

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from equipoise.errors import (
    AlreadyExists,
    DataLoss,
    EquipoiseError,
    InvalidArgument,
    TooLarge,
    Unavailable,
    WrongState,
)
from equipoise.model.rounds import RoundState
from equipoise.model.times import to_microseconds
from equipoise.queries.schema import Schema
from equipoise.queries.workload_compiler import CompiledStatement
from equipoise.records.receipts import SESSION_RECEIPT_TYPE, SessionReceiptPayload, chain_start, chain_step
from equipoise.wire.results import ANSWERS_TO_STATEMENT, answers_from_chunk, answers_to_chunk
from equipoise.wire.session_workload import compile_statement
from equipoise_server.computation.session import Question, SessionJob
from equipoise_server.ledger.guard_comparison import answers_given
from equipoise_server.mechanisms.interface import Answers
from equipoise_server.mechanisms.registry import session_mechanism
from equipoise_server.rounds.context import Context
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.state_machine import closed
from equipoise_server.sessions import answer_store
from equipoise_server.sessions.answer_store import Answered
from equipoise_server.sessions.pending_statements import OTHER_STATEMENT, AnalystProgress, PendingStatement
from equipoise_server.sessions.records import AnsweredRecord
from equipoise_server.sessions.turns import POLL_SECONDS, AnswerSchedule, TurnBased
from equipoise_server.storage.operations import committing
from equipoise_server.workers.session_process import NOT_NOW, SessionProcess

MAX_STATEMENT = 1 << 16  # bytes: many of them wait at once
CLOSED = "the session no longer answers"
ELSEWHERE = "attached elsewhere: another stream of yours has taken the session over"
FULL = "the session has taken as many statements as its length allows"
USED_UP = "the session has used up its updates"
DAMAGED = "the session's stored answers are damaged"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class OpenSession:
    """What a session is, whatever was asked in it."""

    record: RoundRecord
    schema: Schema
    job: SessionJob
    pace: AnswerSchedule


class SessionLoop:
    """Safe to use from several threads. `session` must be this server's, and the guard must know of its opening."""

    def __init__(self, session: OpenSession, context: Context, remember: Callable[[int], None]) -> None:
        self._session = session
        self._id = session.record.id
        self._base = context
        self._remember = remember
        self._mechanism = session_mechanism(session.record.plan.mechanism)
        self._changed = threading.Condition()  # guards all that follows
        self._askers: dict[str, AnalystProgress] = {}
        self._held: dict[str, Future[None]] = {}  # by analyst: the end of the stream that is attached
        self._waiting: list[PendingStatement] = []  # that were not taken yet, in the order of their arrival
        self._due: list[tuple[datetime, PendingStatement, AnsweredRecord | EquipoiseError]] = []
        with context.store.read() as connection:
            # How many answers there are, and the first slot after them.
            _, self._answered = answer_store.standing(connection, self._id)
            self._slots = answer_store.slots_given(connection, self._id)
        self._ended: EquipoiseError | None = None
        self._answerer = SessionProcess(session.job)
        self._thread = threading.Thread(target=self._conduct, name=f"session-{self._id}", daemon=True)
        self._thread.start()

    # For callers

    @property
    def ended(self) -> bool:
        """Whether it conducts no more."""
        return self._ended is not None

    @property
    def problem(self) -> EquipoiseError | None:
        """What callers are told since it has ended."""
        return self._ended

    @property
    def idle(self) -> bool:
        """Whether nobody would notice that it is started again later; of a session by turns everybody would."""
        with self._changed:
            return not (self.by_turns or self._held or self._waiting or self._due)

    @property
    def by_turns(self) -> bool:
        """Whether it answers by turns."""
        return isinstance(self._session.pace, TurnBased)

    @property
    def process_id(self) -> int | None:
        """The worker's process id."""
        return self._answerer.process_id

    def attach(self, analyst: str) -> Future[None]:
        """Make the analyst's newest stream the one that asks; what was not taken of the one before is forgotten."""
        # Whoever has no place here yet is told nothing here meanwhile, so what is read stays true.
        asker = self._asker(analyst)
        with self._changed:
            self._check_going()
            self._askers.setdefault(analyst, asker)
            before = self._held.get(analyst)
            if before is not None:
                self._let_go(analyst, before, WrongState(ELSEWHERE))
            self._held[analyst] = Future()
            return self._held[analyst]

    def detach(self, analyst: str, stream: Future[None]) -> None:
        """Forget a stream, and what it had asked that was not taken yet."""
        with self._changed:
            if self._held.get(analyst) is stream:
                self._let_go(analyst, stream, None)

    def ask(self, analyst: str, stream: Future[None], sequence: int, statement: bytes) -> Future[AnsweredRecord]:
        """As `Attachment.ask`."""
        with self._changed:
            asker = self._attached(analyst, stream)
            waits = asker.known(sequence, statement)
            if waits is not None:
                return waits.answer
            stored = sequence <= asker.stored
        if stored:
            return self._again(asker, sequence, statement)
        # Compiling may take long, and nobody else waits for it.
        compiled = self._compiled(statement)
        with self._changed:
            asker = self._attached(analyst, stream)
            waits = asker.known(sequence, statement)
            # Another thread of the caller's may have asked it meanwhile.
            stored = waits is None and sequence <= asker.stored
            if waits is None and not stored:
                waits = self._accepted(asker, sequence, statement, compiled)
        return self._again(asker, sequence, statement) if waits is None else waits.answer

    def end(self, problem: EquipoiseError | None = None) -> None:
        """End the worker, and tell everybody: that the session is closed, or what the problem is."""
        with self._changed:
            self._finish(problem)
        self._answerer.end()
        self._thread.join()

    # What callers' threads do

    def _check_going(self) -> None:
        if self._ended is not None:
            raise type(self._ended)(self._ended.message)

    def _attached(self, analyst: str, stream: Future[None]) -> AnalystProgress:
        self._check_going()
        if self._held.get(analyst) is not stream:
            raise WrongState(ELSEWHERE)
        return self._askers[analyst]

    def _compiled(self, statement: bytes) -> CompiledStatement:
        if len(statement) > MAX_STATEMENT:
            raise TooLarge(f"the statement is larger than {MAX_STATEMENT:,} bytes")
        compiled = compile_statement(statement, self._session.schema)
        if compiled.query_count > ANSWERS_TO_STATEMENT:
            raise InvalidArgument(
                "statement",
                f"has {compiled.query_count:,} cells, but at most {ANSWERS_TO_STATEMENT:,} are answered",
            )
        self._mechanism.check_statement(self._session.record.plan, compiled)
        return compiled

    def _accepted(
        self, asker: AnalystProgress, sequence: int, statement: bytes, compiled: CompiledStatement
    ) -> PendingStatement:
        now = self._base.clock()
        if closed(self._session.record.terms.close_time, now):
            raise WrongState(CLOSED)
        asker.check_room(compiled.query_count, len(statement))
        if self._session.pace.full(self._slots, sum(each.unstored for each in self._askers.values())):
            raise WrongState(FULL)
        waits = PendingStatement(asker.share.analyst, asker.place, sequence, statement, compiled.query_count, now)
        asker.waiting[sequence] = waits
        self._waiting.append(waits)
        self._changed.notify_all()
        return waits

    def _again(self, asker: AnalystProgress, sequence: int, statement: bytes) -> Future[AnsweredRecord]:
        """The stored answer, when it is due: what was stored before this conductor began may not be yet."""
        with self._base.store.read() as connection:
            found = answer_store.answer_to(connection, self._id, asker.share.analyst, sequence)
        if found is None:
            raise DataLoss(DAMAGED)
        if found.statement != statement:
            raise AlreadyExists(OTHER_STATEMENT)
        known = PendingStatement(asker.share.analyst, asker.place, sequence, statement, 0, found.due)
        with self._changed:
            self._check_going()
            waits = asker.waiting.setdefault(sequence, known)
            if waits is known:
                self._due.append((found.due, known, found.record))
                self._deliver()
                self._changed.notify_all()
            return waits.answer

    def _let_go(self, analyst: str, stream: Future[None], problem: EquipoiseError | None) -> None:
        """What is being answered goes on: it may be stored by now, and its analyst gets it when it asks again."""
        del self._held[analyst]
        mine = [each for each in self._waiting if each.analyst == analyst]
        if mine:
            for each in self._forget_from(mine[0]):
                if problem is None:
                    each.answer.cancel()
                else:
                    each.tell(problem)
        if problem is None:
            stream.cancel()
        else:
            stream.set_exception(problem)

    def _forget_from(self, first: PendingStatement) -> list[PendingStatement]:
        """Forget a statement with all that its analyst has asked after it."""
        forgotten = self._askers[first.analyst].forget_from(first.sequence)
        self._waiting = [each for each in self._waiting if each not in forgotten]
        return forgotten

    def _asker(self, analyst: str) -> AnalystProgress:
        """An analyst as the store knows it."""
        asker = self._unused(analyst)
        with self._base.store.read() as connection:
            last = answer_store.last_of(connection, self._id, analyst)
            size = answer_store.size_of(connection, self._id, analyst)
        if last is not None:
            chunk = answers_from_chunk(last.chunk)
            _advance(asker, last, chunk.first_query + len(chunk.values))
            asker.size = size
        return asker

    def _unused(self, analyst: str) -> AnalystProgress:
        """An analyst that has asked nothing."""
        shares = self._session.record.terms.shares
        place = next(i for i, share in enumerate(shares) if share.analyst == analyst)
        with self._base.store.read() as connection:
            salt = answer_store.salt_in_force(connection, self._id, analyst)
        if salt is None:
            raise DataLoss(DAMAGED)
        return AnalystProgress(
            shares[place], place, 0, 0, chain_start(self._base.deployment, self._id, analyst, salt)
        )

    # What the conductor's own thread does

    def _conduct(self) -> None:
        problem: EquipoiseError | None = None
        try:
            self._remember_all()
            while taken := self._next():
                self._answer(taken)
        except WrongState:
            pass  # sealed, or aborted, in the meantime
        except (DataLoss, Unavailable) as error:
            problem = error
        except IntegrityError:
            # Another server has answered the session, too; what it stored counts.
            problem = Unavailable(NOT_NOW)
        except Exception as error:
            # Its own text may hold what was asked.
            log.error("session_not_answered", session_id=self._id, kind=type(error).__name__)
            problem = Unavailable(NOT_NOW)
        with self._changed:
            self._finish(problem)
        self._answerer.close()

    def _finish(self, problem: EquipoiseError | None) -> None:
        if self._ended is not None:
            return
        if problem is not None:
            log.warning("session_let_go", session_id=self._id, kind=type(problem).__name__)
        self._ended = problem or WrongState(CLOSED)
        self._waiting, self._due = [], []
        for asker in self._askers.values():
            for each in asker.forget_from(0):
                each.tell(self._ended)
        for stream in self._held.values():
            if problem is None:
                stream.set_result(None)
            else:
                stream.set_exception(problem)
        self._held = {}
        self._changed.notify_all()

    def _remember_all(self) -> None:
        """Ask the worker once more all that was answered. Raises `DataLoss` unless the answers are the same."""
        askers: dict[str, AnalystProgress] = {}
        answered = slots = 0
        while page := self._page(slots):
            found = self._answerer.answers([Question(each.slot, each.statement) for each in page])
            if len(found) != len(page):
                raise DataLoss(DAMAGED)
            for stored, computed in zip(page, found, strict=True):
                asker = askers.get(stored.analyst) or self._unused(stored.analyst)
                askers[stored.analyst] = asker
                again = self._made(asker, stored.slot, stored.statement, stored.due, computed)
                if (again.sequence, again.chunk, again.chain) != (stored.sequence, stored.chunk, stored.chain):
                    raise DataLoss(DAMAGED)
                _advance(asker, again, len(computed.values))
            answered += len(page)
            slots = page[-1].slot + 1
        if answered != self._answered:
            raise DataLoss(DAMAGED)

    def _page(self, slot: int) -> list[Answered]:
        with self._base.store.read() as connection:
            return answer_store.from_slot(connection, self._id, slot)

    def _next(self) -> list[tuple[int, PendingStatement]]:
        """What is answered next, as soon as it is time; nothing where the session is let go of."""
        with self._changed:
            while self._ended is None:
                self._deliver()
                now = self._base.clock()
                taken = self._session.pace.take(self._waiting, self._slots, self._due, now)
                if taken:
                    gone = {id(each) for _, each in taken}
                    self._waiting = [each for each in self._waiting if id(each) not in gone]
                    return taken
                if self._waiting and not self._due and closed(self._session.record.terms.close_time, now):
                    # There is no turn left for these.
                    for each in self._waiting:
                        self._due.append((now, each, WrongState(CLOSED)))
                    continue
                self._changed.wait(POLL_SECONDS if self._waiting or self._due else None)
        return []

    def _answer(self, taken: Sequence[tuple[int, PendingStatement]]) -> None:
        """Have some statements answered, store the answers, and put down when to tell them."""
        found = self._answerer.answers([Question(slot, each.statement) for slot, each in taken])
        told = self._stored(taken[: len(found)], found)
        with self._changed:
            if self._ended is not None:
                return
            for (_, each), answered in zip(taken, told, strict=False):
                _advance(self._askers[each.analyst], answered, each.cells)
                self._due.append((answered.due, each, answered.record))
            due = told[-1].due if told else self._session.pace.due(self._base.clock())
            self._due += [(due, each, WrongState(USED_UP)) for _, each in taken[len(found) :]]
            if told:
                self._answered += len(told)
                self._slots = told[-1].slot + 1

    def _stored(self, taken: Sequence[tuple[int, PendingStatement]], found: Sequence[Answers]) -> list[Answered]:
        if not found:
            return []
        with committing(self._base.store, "answers") as connection:
            now = self._base.clock()
            self._check_open(connection)
            made: list[Answered] = []
            after: dict[str, AnalystProgress] = {}
            for (slot, each), computed in zip(taken, found, strict=True):
                asker = after.setdefault(each.analyst, replace(self._askers[each.analyst]))
                answered = self._made(asker, slot, each.statement, self._session.pace.due(now), computed)
                made.append(self._receipted(connection, answered))
                _advance(asker, answered, each.cells)
            answer_store.insert(connection, self._id, self._answered, made)
            given = answers_given(connection)
        # Told only when the guard counts them: a copy of the store without them would be asked once more.
        self._remember(given)
        return made

    def _deliver(self) -> None:
        """Tell what is due, to everybody in one go."""
        now = self._base.clock()
        told = [each for each in self._due if each[0] <= now]
        self._due = [each for each in self._due if each[0] > now]
        for _, waits, answer in told:
            if isinstance(answer, EquipoiseError):
                for each in self._forget_from(waits):
                    each.tell(answer)
            else:
                self._askers[waits.analyst].waiting.pop(waits.sequence, None)
                waits.tell(answer)

    def _made(
        self, asker: AnalystProgress, slot: int, statement: bytes, due: datetime, computed: Answers
    ) -> Answered:
        """The analyst's next answer, without its receipt."""
        columns = (computed.values, computed.methods, computed.bounds)
        sequence = asker.stored + 1
        chunk = answers_to_chunk(self._id, sequence, asker.cells, *columns)
        chain = chain_step(asker.chain, sequence, slot, statement, *columns)
        return Answered(asker.share.analyst, sequence, slot, due, statement, chunk, b"", chain)

    def _receipted(self, connection: Connection, answered: Answered) -> Answered:
        """The answer with its receipt, whose time says no more than when it is due."""
        payload = SessionReceiptPayload(
            self._base.deployment,
            self._id,
            answered.analyst,
            answered.sequence,
            answered.chain,
            to_microseconds(answered.due),
        )
        envelope = self._base.signer.receipt(connection, SESSION_RECEIPT_TYPE, payload.to_bytes())
        return replace(answered, envelope=envelope)

    def _check_open(self, connection: Connection) -> None:
        state, answered = answer_store.standing(connection, self._id)
        if state != RoundState.OPEN.value:
            raise WrongState(CLOSED)
        if answered != self._answered:
            # By another server, which took this one for dead.
            raise Unavailable(NOT_NOW)


def _advance(asker: AnalystProgress, answered: Answered, cells: int) -> None:
    asker.stored, asker.chain = answered.sequence, answered.chain
    asker.cells, asker.size = asker.cells + cells, asker.size + len(answered.statement)
