"""What the clients of a server that dies were told.

A client notes what it asks before it asks, and what it was told after. So one thing only is unknown of each fact:
whether what was asked and not answered yet has happened.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from harness.answers import to_bytes

from equipoise.errors import WrongState
from equipoise.model.results import ResultColumns
from equipoise.model.rounds import RoundState

CHARGED = {RoundState.RUNNING, RoundState.RELEASED}

Fact = tuple[str, ...]  # ("workload", round, analyst) or ("cap", account)


@dataclass(frozen=True)
class Answered:
    """A question that changed something, who asked it, and what the first answer was."""

    caller: str
    question: Callable[..., object]
    answer: object


@dataclass
class Promises:
    """Everything that clients were told. Safe to use from several threads."""

    opens: int = 0  # how many rounds were asked for
    states: dict[str, set[RoundState]] = field(default_factory=dict)  # by round, all that were told
    may_abort: set[str] = field(default_factory=set)  # rounds that may have been aborted
    facts: dict[Fact, tuple[object, ...]] = field(default_factory=dict)  # one of these is so
    streams: dict[tuple[str, str], str] = field(default_factory=dict)  # digests by round and analyst
    answers: list[Answered] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)  # rounds that are sessions
    receipts: dict[tuple[str, str, int], bytes] = field(default_factory=dict)  # by session, analyst and sequence
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reached(self, round_id: str, state: RoundState) -> None:
        """A round was said to be in a state."""
        with self.lock:
            self.states.setdefault(round_id, set()).add(state)

    def read(self, round_id: str, analyst: str, columns: Iterable[ResultColumns]) -> None:
        """A stream was read, which must be what was read before."""
        digest = stream_digest(columns)
        with self.lock:
            assert self.streams.setdefault((round_id, analyst), digest) == digest, "answered twice"

    def answered(self, session_id: str, analyst: str, sequence: int, receipt: bytes) -> None:
        """A statement of a session was answered, which must be as before: its receipt covers all that was said."""
        with self.lock:
            assert self.receipts.setdefault((session_id, analyst, sequence), receipt) == receipt, "answered twice"

    @contextmanager
    def asking(self, fact: Fact, value: object) -> Iterator[None]:
        """While the block runs, the fact may be as it was or have this value; after it, it has this value.

        Where the block ends with `WrongState`, it is as it was.
        """
        before = self.facts.get(fact, (None,))
        assert len(before) == 1, fact
        self.facts[fact] = (*before, value)
        try:
            yield
        except WrongState:
            self.facts[fact] = before
            raise
        self.facts[fact] = (value,)

    def charged(self) -> list[str]:
        """The rounds whose charges nothing can give back any more."""
        return [
            round_id
            for round_id, told in self.states.items()
            if round_id in self.sessions
            or told & CHARGED
            or (RoundState.SEALED in told and round_id not in self.may_abort)
        ]

    def as_of_now(self) -> Promises:
        """A copy that does not change."""
        with self.lock:
            states = {round_id: set(told) for round_id, told in self.states.items()}
            return Promises(
                self.opens,
                states,
                set(self.may_abort),
                dict(self.facts),
                dict(self.streams),
                sessions=set(self.sessions),
                receipts=dict(self.receipts),
            )


def stream_digest(columns: Iterable[ResultColumns]) -> str:
    """SHA-256 of everything that a stream says."""
    digest = hashlib.sha256()
    for part in columns:
        said = (part.round_id, part.sequence, part.first_query, len(part.answers), part.last)
        digest.update(repr(said).encode())
        digest.update(to_bytes(part.answers))
    return digest.hexdigest()
