"""Which of the statements that wait are answered next, in which slots, and when their answers are due.

Where analysts are not protected from one another, statements are answered as they come. Where they are, the clock
alone gives slots: in turn t, the share in place i of m has slot `t m + i`. Statements that arrive in a turn are
taken when it ends, one of each analyst; all answers of a turn are due together, at the first boundary of turns
after they were stored. So when anything happens is a function of the turns, as long as one is enough to answer
everybody.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

POLL_SECONDS = 0.02  # the clock is looked at so often, while something waits for it
MAX_AT_ONCE = 64  # statements in one transaction; each may have a megabyte of cells


class Arrived(Protocol):
    """A statement that waits. `place`: of its analyst's share; `arrived`: when it came."""

    @property
    def place(self) -> int: ...
    @property
    def arrived(self) -> datetime: ...


Waits = TypeVar("Waits", bound=Arrived)


class AnswerSchedule(Protocol):
    """How a session's statements are taken."""

    def full(self, slots: int, accepted: int) -> bool:
        """Whether no slot is left for one more statement, after `slots` were given and some more accepted."""
        ...

    def take(
        self, waiting: Sequence[Waits], slots: int, undelivered: Collection[object], now: datetime
    ) -> list[tuple[int, Waits]]:
        """What is answered now, with slots in ascending order, none below `slots`; nothing where it is not time.

        `waiting`: in the order of their arrival; `undelivered`: answers that are not due yet.
        """
        ...

    def due(self, now: datetime) -> datetime:
        """When answers that are stored now are given."""
        ...


@dataclass(frozen=True)
class Immediate:
    """In the order of arrival, `length` statements in all."""

    length: int

    def full(self, slots: int, accepted: int) -> bool:
        return slots + accepted >= self.length

    def take(
        self,
        waiting: Sequence[Waits],
        slots: int,
        undelivered: Collection[object],  # noqa: ARG002
        now: datetime,  # noqa: ARG002
    ) -> list[tuple[int, Waits]]:
        return list(enumerate(waiting[:MAX_AT_ONCE], start=slots))

    def due(self, now: datetime) -> datetime:
        return now


@dataclass(frozen=True)
class TurnBased:
    """One statement of each of `shares` analysts in each of `turns` turns, the first of which begins at `start`."""

    start: datetime
    turn: timedelta
    turns: int
    shares: int

    def full(self, slots: int, accepted: int) -> bool:  # noqa: ARG002
        # The closing time says when statements come too late.
        return False

    def take(
        self, waiting: Sequence[Waits], slots: int, undelivered: Collection[object], now: datetime
    ) -> list[tuple[int, Waits]]:
        # The last turn that has ended. Where the answers of an earlier one are not due yet, the next turn's wait
        # for their boundary, so that none is computed when another one's are to be given.
        turn = min((now - self.start) // self.turn, self.turns) - 1
        if undelivered or turn * self.shares < slots:
            return []
        ended = self.start + (turn + 1) * self.turn
        first: dict[int, Waits] = {}
        for pending in waiting:
            if pending.arrived < ended:
                first.setdefault(pending.place, pending)
        return [(turn * self.shares + place, first[place]) for place in sorted(first)]

    def due(self, now: datetime) -> datetime:
        return self.start + ((now - self.start) // self.turn + 1) * self.turn
