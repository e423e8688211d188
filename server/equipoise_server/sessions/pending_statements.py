"""The pending statements of an open session, the progress of its analysts, and their attached streams."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from equipoise.errors import AlreadyExists, BudgetExhausted, EquipoiseError, OutOfRange, TooLarge, WrongState
from equipoise.model.rounds import Share
from equipoise.queries.grant_account import Wanted
from equipoise_server.sessions.answer_store import StoredAnswer

ELSEWHERE = "attached elsewhere: another stream of yours has taken the session over"
OTHER_STATEMENT = "sequence: was asked before with another statement"
MAX_BYTES = 1 << 26  # of one analyst's statements; sealing joins them into one workload, which a store must hold


@dataclass(eq=False)
class PendingStatement:
    """An accepted statement whose answer was not delivered yet. `place` is the position of the analyst's share.

    `wanted`: what it asks of a grant; None elsewhere. `cost`: what it does cost; 0 until it is taken.
    """

    analyst: str
    place: int
    sequence: int
    statement: bytes
    cells: int
    arrived: datetime
    wanted: Wanted | None = None
    cost: int = 0
    answer: Future[StoredAnswer] = field(default_factory=Future)

    def tell(self, outcome: StoredAnswer | EquipoiseError) -> None:
        """End the future with an answer or an error, unless the waiting caller has cancelled it."""
        with suppress(InvalidStateError):
            if isinstance(outcome, EquipoiseError):
                self.answer.set_exception(outcome)
            else:
                self.answer.set_result(outcome)


@dataclass(eq=False)
class AnalystProgress:
    """One analyst's share of a session, and how far it is used.

    Attributes:
        share: the share.
        place: the position of the share in the session's terms.
        stored: the number of statements whose answers are stored.
        cells: the number of queries that the stored answers have together.
        chain: the hash chain of the last stored answer.
        size: the total size of the stored statements in bytes.
        waiting: the accepted statements that were not delivered, stored or not, by sequence number, in order.
    """

    share: Share
    place: int
    stored: int
    cells: int
    chain: bytes
    size: int = 0
    waiting: dict[int, PendingStatement] = field(default_factory=dict)

    @property
    def asked(self) -> int:
        """The sequence number of the last statement that was accepted."""
        return max(self.stored, *self.waiting) if self.waiting else self.stored

    @property
    def unstored(self) -> int:
        """The number of accepted statements whose answers are not stored yet."""
        return sum(number > self.stored for number in self.waiting)

    def known(self, sequence: int, statement: bytes) -> PendingStatement | None:
        """Return the same statement, if it waits already.

        Raises:
            AlreadyExists: the sequence number was used for another statement that waits.
            OutOfRange: the sequence number is beyond the next one, or below 1.
        """
        if not 1 <= sequence <= self.asked + 1:
            raise OutOfRange(f"sequence: the next statement is number {self.asked + 1}")
        waits = self.waiting.get(sequence)
        if waits is not None and waits.statement != statement:
            raise AlreadyExists(OTHER_STATEMENT)
        return waits

    def check_room(self, cells: int, size: int) -> None:
        """Check that the share has room for another statement.

        Args:
            cells: the number of the statement's queries.
            size: the statement's size in bytes.

        Raises:
            BudgetExhausted: the share allows fewer statements or queries.
            TooLarge: the analyst's statements would be too large together.
        """
        if self.asked >= self.share.statements:
            raise BudgetExhausted(f"your share allows {self.share.statements} statements, and all were asked")
        unstored = [pending for number, pending in self.waiting.items() if number > self.stored]
        used = self.cells + sum(pending.cells for pending in unstored)
        if used + cells > self.share.queries:
            left = self.share.queries - used
            raise BudgetExhausted(f"the statement has {cells} queries, your share allows {left} more")
        if self.size + sum(len(pending.statement) for pending in unstored) + size > MAX_BYTES:
            raise TooLarge(f"your statements in this session are larger than {MAX_BYTES:,} bytes together")

    def advance(self, stored: StoredAnswer, cells: int) -> None:
        """Count the next answer, which has `cells` queries, as stored."""
        self.stored, self.chain = stored.sequence, stored.chain
        self.cells, self.size = self.cells + cells, self.size + len(stored.statement)

    def forget_from(self, sequence: int) -> list[PendingStatement]:
        """Remove and return the waiting statements from a sequence number on. Stored answers stay stored."""
        return [self.waiting.pop(number) for number in sorted(self.waiting) if number >= sequence]


class PendingStatements:
    """Every analyst's progress and stream in one session. Not safe to use from threads: the loop's lock guards it.

    `waiting` has the statements that were not taken yet, in the order of their arrival.
    """

    def __init__(self) -> None:
        self.waiting: list[PendingStatement] = []
        self._progress: dict[str, AnalystProgress] = {}
        self._streams: dict[str, Future[None]] = {}  # by analyst: the end of the stream that is attached

    @property
    def in_use(self) -> bool:
        """Whether a stream is attached, or a statement waits to be taken."""
        return bool(self._streams or self.waiting)

    @property
    def unstored(self) -> int:
        """The number of all analysts' accepted statements whose answers are not stored yet."""
        return sum(progress.unstored for progress in self._progress.values())

    def progress(self, analyst: str) -> AnalystProgress:
        """Return the progress of an analyst who has been attached."""
        return self._progress[analyst]

    def has_attached(self, analyst: str) -> AnalystProgress | None:
        """Return the progress of an analyst; None of one who has not been attached."""
        return self._progress.get(analyst)

    def attach(self, progress: AnalystProgress) -> Future[None]:
        """Attach a new stream of an analyst, and detach the earlier one.

        Args:
            progress: the analyst's stored progress, which is used if the analyst was not attached before.

        Returns:
            A future, which ends when the stream is detached or the session ends.
        """
        analyst = progress.share.analyst
        self._progress.setdefault(analyst, progress)
        before = self._streams.get(analyst)
        if before is not None:
            self.detach(analyst, before, WrongState(ELSEWHERE))
        self._streams[analyst] = Future()
        return self._streams[analyst]

    def attached(self, analyst: str, stream: Future[None]) -> AnalystProgress:
        """Return the analyst's progress. Raises `WrongState` unless this stream of the analyst is attached."""
        if self._streams.get(analyst) is not stream:
            raise WrongState(ELSEWHERE)
        return self._progress[analyst]

    def detach(self, analyst: str, stream: Future[None], problem: EquipoiseError | None = None) -> None:
        """Forget a stream, if it is still attached, and those of its statements that were not taken yet.

        Statements that were taken are answered nevertheless. The analyst gets the answers on asking again.
        """
        if self._streams.get(analyst) is not stream:
            return
        del self._streams[analyst]
        first = next((pending for pending in self.waiting if pending.analyst == analyst), None)
        for pending in [] if first is None else self.forget_from(first):
            if problem is None:
                pending.answer.cancel()
            else:
                pending.tell(problem)
        if problem is None:
            stream.cancel()
        else:
            stream.set_exception(problem)

    def add(self, progress: AnalystProgress, pending: PendingStatement) -> None:
        """Add an accepted statement to those that wait to be taken."""
        progress.waiting[pending.sequence] = pending
        self.waiting.append(pending)

    def take(self, accepted: Collection[PendingStatement]) -> None:
        """Remove some statements from those that wait to be taken."""
        gone = set(accepted)
        self.waiting = [pending for pending in self.waiting if pending not in gone]

    def forget_from(self, first: PendingStatement) -> list[PendingStatement]:
        """Remove and return a statement and all later waiting statements of its analyst."""
        forgotten = self._progress[first.analyst].forget_from(first.sequence)
        self.take(forgotten)
        return forgotten

    def finish(self, ending: EquipoiseError, problem: EquipoiseError | None) -> None:
        """End every waiting statement with `ending`, and every stream with `problem`, or with None without one."""
        self.waiting = []
        for progress in self._progress.values():
            for pending in progress.forget_from(0):
                pending.tell(ending)
        for stream in self._streams.values():
            if problem is None:
                stream.set_result(None)
            else:
                stream.set_exception(problem)
        self._streams = {}
