"""What is known of one analyst in a session that is open: what it has asked, and what it may ask yet."""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from equipoise.errors import AlreadyExists, BudgetExhausted, EquipoiseError, OutOfRange, TooLarge
from equipoise.model.rounds import Share
from equipoise_server.sessions.records import AnsweredRecord

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
    answer: Future[AnsweredRecord] = field(default_factory=Future)

    def tell(self, told: AnsweredRecord | EquipoiseError) -> None:
        """End the future, unless whoever waited has let go of it."""
        with suppress(InvalidStateError):
            if isinstance(told, EquipoiseError):
                self.answer.set_exception(told)
            else:
                self.answer.set_result(told)


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
        unstored = [each for number, each in self.waiting.items() if number > self.stored]
        used = self.cells + sum(each.cells for each in unstored)
        if used + cells > self.share.queries:
            left = self.share.queries - used
            raise BudgetExhausted(f"the statement has {cells} queries, your share allows {left} more")
        if self.size + sum(len(each.statement) for each in unstored) + size > MAX_BYTES:
            raise TooLarge(f"your statements in this session are larger than {MAX_BYTES:,} bytes together")

    def forget_from(self, sequence: int) -> list[PendingStatement]:
        """Forget what waits from a sequence number on; what was stored is not forgotten, only not waited for."""
        return [self.waiting.pop(number) for number in sorted(self.waiting) if number >= sequence]
