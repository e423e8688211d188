"""What the analysts of an open session have asked and were not told yet, what they may ask, and who is attached."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from equipoise.errors import AlreadyExists, BudgetExhausted, EquipoiseError, OutOfRange, TooLarge, WrongState
from equipoise.model.rounds import Share
from equipoise_server.sessions.answer_store import StoredAnswer

ELSEWHERE = "attached elsewhere: another stream of yours has taken the session over"
OTHER_STATEMENT = "sequence: was asked before with another statement"
MAX_BYTES = 1 << 26  # of one analyst's statements: sealing makes one workload of them, which a store must hold


@dataclass(eq=False)
class PendingStatement:
    """A statement that was accepted, and whose answer its analyst does not have yet. `place`: of its share."""

    analyst: str
    place: int
    sequence: int
    statement: bytes
    cells: int
    arrived: datetime
    answer: Future[StoredAnswer] = field(default_factory=Future)

    def tell(self, outcome: StoredAnswer | EquipoiseError) -> None:
        """End the future, unless whoever waited has let go of it."""
        with suppress(InvalidStateError):
            if isinstance(outcome, EquipoiseError):
                self.answer.set_exception(outcome)
            else:
                self.answer.set_result(outcome)


@dataclass(eq=False)
class AnalystProgress:
    """One share of a session, and how far it is used: `stored` statements, `cells`, `chain`, `size` in bytes.

    `waiting`: what was accepted and not delivered, by sequence number, in order; stored or not.
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
        """How many statements were accepted whose answers are not stored yet."""
        return sum(number > self.stored for number in self.waiting)

    def known(self, sequence: int, statement: bytes) -> PendingStatement | None:
        """The same statement, if it waits already. Raises `AlreadyExists`, and `OutOfRange` beyond the next one."""
        if not 1 <= sequence <= self.asked + 1:
            raise OutOfRange(f"sequence: the next statement is number {self.asked + 1}")
        waits = self.waiting.get(sequence)
        if waits is not None and waits.statement != statement:
            raise AlreadyExists(OTHER_STATEMENT)
        return waits

    def check_room(self, cells: int, size: int) -> None:
        """Raises `BudgetExhausted` or `TooLarge` unless a statement with so many cells and bytes has room."""
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
        """Count the next answer, of so many cells, as stored."""
        self.stored, self.chain = stored.sequence, stored.chain
        self.cells, self.size = self.cells + cells, self.size + len(stored.statement)

    def forget_from(self, sequence: int) -> list[PendingStatement]:
        """Forget what waits from a sequence number on; what was stored is not forgotten, only not waited for."""
        return [self.waiting.pop(number) for number in sorted(self.waiting) if number >= sequence]


class PendingStatements:
    """Every analyst's progress in one session, and its stream. Not safe to use from threads: the loop guards it.

    `waiting`: the statements that were not taken yet, in the order of their arrival.
    """

    def __init__(self) -> None:
        self.waiting: list[PendingStatement] = []
        self._progress: dict[str, AnalystProgress] = {}
        self._streams: dict[str, Future[None]] = {}  # by analyst: the end of the stream that is attached

    @property
    def in_use(self) -> bool:
        """Whether anybody is attached, or waits for anything to be taken."""
        return bool(self._streams or self.waiting)

    @property
    def unstored(self) -> int:
        """How many statements were accepted, of all analysts, whose answers are not stored yet."""
        return sum(progress.unstored for progress in self._progress.values())

    def progress(self, analyst: str) -> AnalystProgress:
        """Return the progress of an analyst that was attached."""
        return self._progress[analyst]

    def attach(self, progress: AnalystProgress) -> Future[None]:
        """Make the analyst's newest stream the one that asks; `progress` counts where the analyst has none yet."""
        analyst = progress.share.analyst
        self._progress.setdefault(analyst, progress)
        before = self._streams.get(analyst)
        if before is not None:
            self.detach(analyst, before, WrongState(ELSEWHERE))
        self._streams[analyst] = Future()
        return self._streams[analyst]

    def attached(self, analyst: str, stream: Future[None]) -> AnalystProgress:
        """Return the analyst's progress. Raises `WrongState` where another stream of the analyst's is attached."""
        if self._streams.get(analyst) is not stream:
            raise WrongState(ELSEWHERE)
        return self._progress[analyst]

    def detach(self, analyst: str, stream: Future[None], problem: EquipoiseError | None = None) -> None:
        """Forget a stream, if it is still attached, and what it had asked that was not taken yet.

        What is being answered goes on: it may be stored by now, and its analyst gets it when it asks again.
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
        """Let an accepted statement wait for its turn."""
        progress.waiting[pending.sequence] = pending
        self.waiting.append(pending)

    def take(self, accepted: Collection[PendingStatement]) -> None:
        """Let some statements wait no longer to be taken."""
        gone = set(accepted)
        self.waiting = [pending for pending in self.waiting if pending not in gone]

    def forget_from(self, first: PendingStatement) -> list[PendingStatement]:
        """Forget a statement with all that its analyst has asked after it."""
        forgotten = self._progress[first.analyst].forget_from(first.sequence)
        self.take(forgotten)
        return forgotten

    def finish(self, ending: EquipoiseError, problem: EquipoiseError | None) -> None:
        """Tell everybody who waits, and end every stream, with the problem if there is one."""
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
