"""The loop of one open session on this server: it has statements answered and delivers each answer when it is due.

One thread asks the worker and writes to the store; callers' threads only add statements and wait. An answer is
delivered when it is stored, the guard counts it (`answer_journal`), and it is due.
If the worker, the store or the guard fails, or the clock by which turns end is not trusted, the loop ends, and
every waiting caller gets the same error. The next attachment starts the session again from the store.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from datetime import datetime

import structlog

from equipoise.errors import EquipoiseError, WrongState
from equipoise_server.clock import Clock
from equipoise_server.computation.session import Question as AskedQuestion
from equipoise_server.rounds.state_machine import closed
from equipoise_server.sessions.answer_journal import CLOSED, AnswerJournal, NonceChangedError
from equipoise_server.sessions.answer_store import StoredAnswer
from equipoise_server.sessions.loop_problems import problem_of
from equipoise_server.sessions.open_session import OpenSession, Question, by_turns
from equipoise_server.sessions.pending_statements import AnalystProgress, PendingStatement, PendingStatements
from equipoise_server.sessions.turns import POLL_SECONDS
from equipoise_server.workers.session_process import SessionProcess

FULL = "the session has taken as many statements as its length allows"
USED_UP = "the session has used up its updates"

log = structlog.get_logger(__name__)


class SessionLoop:
    """The loop of one session that this server has claimed and that the guard knows. Safe to use from threads."""

    def __init__(self, session: OpenSession, journal: AnswerJournal, clock: Clock, idle_seconds: float) -> None:
        self._session, self._id = session, session.record.id
        self._journal, self._clock = journal, clock
        self._changed = threading.Condition()  # guards all that follows
        self._pending = PendingStatements()
        self._due: list[tuple[datetime, PendingStatement, StoredAnswer | EquipoiseError]] = []
        self._slots, self._spending = journal.first_slot, journal.spending()
        self._ended: EquipoiseError | None = None
        self._process = SessionProcess(session.job, idle_seconds, session.table)
        self._thread = threading.Thread(target=self._answer_all, name=f"session-{self._id}", daemon=True)
        self._thread.start()

    # For callers

    @property
    def problem(self) -> EquipoiseError | None:
        """The error that callers get since the loop has ended; None while it runs."""
        return self._ended

    @property
    def idle(self) -> bool:
        """Whether nobody would notice an end of the loop: no stream is attached, nothing waits, no turns run."""
        with self._changed:
            return not (self.by_turns or self._pending.in_use or self._due)

    @property
    def by_turns(self) -> bool:
        """Whether the session answers by turns."""
        return by_turns(self._session.record)

    @property
    def of_grant(self) -> bool:
        """Whether the session is a grant."""
        return self._spending.account is not None

    @property
    def audit_nonce(self) -> bytes | None:
        """The auditor's nonce under which the worker draws its noise; None without one."""
        return self._session.job.audit_nonce

    @property
    def process_id(self) -> int | None:
        """The worker's process id."""
        return self._process.process_id

    def attach(self, analyst: str) -> Future[None]:
        """Attach a stream of the analyst. Statements of an earlier stream that were not taken yet are forgotten."""
        # Who is known once stays so, and needs no lock. Others get no answers meanwhile: what is read stays true.
        progress = self._pending.has_attached(analyst) or self._journal.progress(analyst)
        with self._changed:
            self._check_open()
            return self._pending.attach(progress)

    def detach(self, analyst: str, stream: Future[None]) -> None:
        """Forget a stream, and those of its statements that were not taken yet."""
        with self._changed:
            self._pending.detach(analyst, stream)

    def ask(self, analyst: str, stream: Future[None], sequence: int, statement: bytes) -> Future[StoredAnswer]:
        """Ask a statement over an attached stream, as `Attachment.ask` does."""
        question: Question | None = None
        while True:
            with self._changed:
                self._check_open()
                progress = self._pending.attached(analyst, stream)
                pending = progress.known(sequence, statement)
                if pending is None and sequence > progress.stored and question is not None:
                    pending = self._accept(progress, sequence, statement, question)
                if pending is not None:
                    return pending.answer
                stored = sequence <= progress.stored
            if stored:
                return self._tell_again(progress, sequence, statement)
            # Compile without the lock, as it may be slow. The caller may ask the same statement again meanwhile.
            question = self._session.question(statement)

    def end(self, problem: EquipoiseError | None = None) -> None:
        """End the worker, and tell all callers that the session is closed, or what the problem is."""
        with self._changed:
            self._finish(problem)
        self._process.end()
        self._thread.join()

    # What callers' threads do

    def _check_open(self) -> None:
        if self._ended is not None:
            raise type(self._ended)(self._ended.message)

    def _accept(
        self, progress: AnalystProgress, sequence: int, statement: bytes, question: Question
    ) -> PendingStatement:
        now = self._clock()
        if closed(self._session.record.terms.close_time, now):
            raise WrongState(CLOSED)
        progress.check_room(question.cells, len(statement))
        if self._session.schedule.full(self._slots, self._pending.unstored):
            raise WrongState(FULL)
        self._spending.check(self._pending.waiting, question.wanted)
        whose = progress.share.analyst, progress.place
        pending = PendingStatement(*whose, sequence, statement, question.cells, now, question.wanted)
        self._pending.add(progress, pending)
        self._changed.notify_all()
        return pending

    def _tell_again(self, progress: AnalystProgress, sequence: int, statement: bytes) -> Future[StoredAnswer]:
        """Return a future of a stored answer, which may not be due yet if an earlier loop stored it."""
        analyst = progress.share.analyst
        stored = self._journal.answer_to(analyst, sequence, statement)
        known = PendingStatement(analyst, progress.place, sequence, statement, 0, stored.due)
        with self._changed:
            self._check_open()
            pending = progress.waiting.setdefault(sequence, known)
            if pending is known:
                self._due.append((stored.due, known, stored))
                self._deliver()
                self._changed.notify_all()
            return pending.answer

    # What the loop's own thread does

    def _answer_all(self) -> None:
        problem: EquipoiseError | None = None
        try:
            self._process.begin()
            self._journal.compute_again(self._process)
            if self._session.begins_late:  # else who has asked meanwhile would decide who waits longer
                self._process.pass_to(self._slots)
                with self._changed:
                    self._slots = max(self._slots, self._session.schedule.passed(self._clock()))
            while self._ended is None:
                if taken := self._next():
                    self._answer(taken)
                elif self._ended is None:
                    # At once: else the next answers would come the later the fewer have asked.
                    self._process.pass_to(self._slots)
        except Exception as error:
            problem = problem_of(error, self._id)
        with self._changed:
            self._finish(problem)
        self._process.close()

    def _next(self) -> list[tuple[int, PendingStatement]]:
        """Wait until statements are to be answered, and return them with their slots.

        Return none when the loop ends, and when slots are over that were not used.
        """
        with self._changed:
            while self._ended is None:
                self._deliver()
                now, waiting = self._clock(), self._pending.waiting
                taken = self._session.schedule.take(waiting, self._slots, self._due, now)
                if taken:
                    self._pending.take([pending for _, pending in taken])
                    self._spending.pay([pending for _, pending in taken])
                    return taken
                if waiting and not self._due and closed(self._session.record.terms.close_time, now):
                    # No turn is left for these statements.
                    self._due += [(now, pending, WrongState(CLOSED)) for pending in waiting]
                    continue
                passed = self._session.schedule.passed(now)
                if passed > self._slots and not self._due:
                    self._slots = passed
                    return []
                self._changed.wait(POLL_SECONDS if waiting or self._due else self._session.schedule.idle_seconds)
        return []

    def _answer(self, taken: Sequence[tuple[int, PendingStatement]]) -> None:
        """Have some statements answered, store the answers, and note when each is due."""
        found = self._process.answers([AskedQuestion(slot, pending.statement) for slot, pending in taken])
        answered, unanswered = taken[: len(found)], taken[len(found) :]
        progress = {pending.analyst: self._pending.progress(pending.analyst) for _, pending in answered}
        try:
            stored = self._journal.append(answered, found, progress) if answered else []
        except NonceChangedError:
            # Wait for `SessionLoops.look_after` to end the loop, as if nobody had asked: asking must not show.
            with self._changed:
                self._changed.wait_for(lambda: self._ended is not None)
            return
        with self._changed:
            if self._ended is not None:
                return
            for (_, pending), answer in zip(answered, stored, strict=True):
                progress[pending.analyst].advance(answer, pending.cells)
                self._due.append((answer.due, pending, answer))
            due = stored[-1].due if stored else self._session.schedule.due(self._clock())
            self._due += [(due, pending, WrongState(USED_UP)) for _, pending in unanswered]
            if stored:
                self._slots = stored[-1].slot + 1

    def _deliver(self) -> None:
        """Deliver all due answers at once."""
        now = self._clock()
        due = [each for each in self._due if each[0] <= now]
        self._due = [each for each in self._due if each[0] > now]
        for _, pending, answer in due:
            if isinstance(answer, EquipoiseError):
                for forgotten in self._pending.forget_from(pending):
                    forgotten.tell(answer)
            else:
                self._pending.progress(pending.analyst).waiting.pop(pending.sequence, None)
                pending.tell(answer)

    def _finish(self, problem: EquipoiseError | None) -> None:
        if self._ended is not None:
            return
        if problem is not None:
            log.warning("session_let_go", session_id=self._id, kind=type(problem).__name__)
        self._ended, self._due = problem or WrongState(CLOSED), []
        self._pending.finish(self._ended, problem)
        self._changed.notify_all()
