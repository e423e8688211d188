"""Answer schedules: which waiting statements are answered next, in which slots, and when their answers are due.

Where a session does not protect its analysts from one another, statements are answered as they arrive. Where it
does, the clock alone determines the slots: in turn t, the share at position i of m has slot `t m + i`. When a turn
ends, one statement of each analyst that arrived before its end is taken. All answers of a turn are due together, at
the first boundary between turns after they were stored. So all times are functions of the turns, as long as one
turn is long enough to answer all analysts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

POLL_SECONDS = 0.02  # between two looks at the clock, while a statement or an answer waits
IDLE_SECONDS = 0.5  # between two looks at the clock, while nothing waits but turns end
MAX_AT_ONCE = 64  # statements in one transaction; each may have a megabyte of cells


class Arrived(Protocol):
    """A waiting statement: the `place` of its analyst's share, and the time at which it `arrived`."""

    @property
    def place(self) -> int: ...
    @property
    def arrived(self) -> datetime: ...


Waits = TypeVar("Waits", bound=Arrived)


class AnswerSchedule(Protocol):
    """The schedule by which a session's statements are taken and answered."""

    @property
    def idle_seconds(self) -> float | None:
        """For how long nothing can become due while nobody asks; None: for ever."""
        ...

    def passed(self, now: datetime) -> int:
        """Return the first slot that may still be used for a statement that arrives from now on."""
        ...

    def full(self, slots: int, accepted: int) -> bool:
        """Return whether no slot is left for one more statement.

        Args:
            slots: the number of slots that are used up.
            accepted: the number of accepted statements that have no slot yet.
        """
        ...

    def take(
        self, waiting: Sequence[Waits], slots: int, undelivered: Collection[object], now: datetime
    ) -> list[tuple[int, Waits]]:
        """Return the statements to answer now, each with its slot, in ascending order; none before their time.

        Args:
            waiting: the waiting statements, in the order of their arrival.
            slots: the first slot that may be used.
            undelivered: the answers that are not due yet.
            now: the time.
        """
        ...

    def due(self, now: datetime) -> datetime:
        """Return the time at which answers that are stored now are due."""
        ...


@dataclass(frozen=True)
class Immediate:
    """The schedule that answers statements at once, in the order of arrival, `length` statements in all."""

    length: int
    idle_seconds: None = None

    def passed(self, now: datetime) -> int:  # noqa: ARG002
        return 0

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
    """The schedule that answers one statement of each of `shares` analysts in each of `turns` turns.

    The first turn begins at `start`; each turn lasts `turn`.
    """

    start: datetime
    turn: timedelta
    turns: int
    shares: int
    idle_seconds: float = IDLE_SECONDS

    def passed(self, now: datetime) -> int:
        return max(0, min((now - self.start) // self.turn, self.turns)) * self.shares

    def full(self, slots: int, accepted: int) -> bool:  # noqa: ARG002
        # The closing time says when statements come too late.
        return False

    def take(
        self, waiting: Sequence[Waits], slots: int, undelivered: Collection[object], now: datetime
    ) -> list[tuple[int, Waits]]:
        # The last turn that has ended. While answers of an earlier turn are not due yet, the statements of the next
        # turn wait, so that no answer is computed when others are to be delivered.
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
