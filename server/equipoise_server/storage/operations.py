"""Operations: requests that change something, each carried out once, in one transaction.

    def work(connection, now): ...      # changes the store; returns what to keep of the answer, as text
    def read(connection, kept): ...     # the answer: the first time and every time the same request comes again
    operations.carry_out(request, work, read)

An operation is named by its request's method, and so are its two crash points. A kill before the commit means that
nothing happened, and that the same request will be carried out; after it, the same request gets the same answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import Connection

from equipoise_server.storage.crash_points import CrashPoint, reached
from equipoise_server.storage.idempotency import Request, first_answer, keep_answer, last_time
from equipoise_server.storage.store import Store

Answer = TypeVar("Answer")
Work = Callable[[Connection, datetime], str]
Reader = Callable[[Connection, str], Answer]


@contextmanager
def committing(store: Store, name: str) -> Iterator[Connection]:
    """A writing transaction with the crash points of this name, before its commit and after it."""
    with store.write() as connection:
        yield connection
        reached(CrashPoint(f"{name} written"))
    reached(CrashPoint(f"{name} committed"))


class Operations:
    """Carries requests out on one store. Safe to use from several threads.

    `remember` lets the rollback guard know of all that was done, so that no copy of the store from before is
    accepted; it raises `DataLoss` and `Unavailable`.
    """

    def __init__(self, store: Store, clock: Callable[[], datetime], remember: Callable[[], None]) -> None:
        self.store = store
        self.clock = clock
        self.remember = remember
        self._behind = threading.Event()  # the guard, by requests that were accepted

    def answered(self, request: Request, read: Reader[Answer]) -> Answer | None:
        """The answer to a request that was carried out before, and that the guard knows of; None for a new one.

        Raises `AlreadyExists` where another request had its id, `DataLoss`, `Unavailable`.
        """
        with self.store.read() as connection:
            kept = first_answer(connection, request)
            if kept is None:
                return None
            answer = read(connection, kept)
        # Whoever carried it out may have died, or been told of an error, before the guard knew.
        self.remember()
        return answer

    def carry_out(self, request: Request, work: Work, read: Reader[Answer]) -> Answer:
        """Carry a request out, unless that was done before. The guard knows of it when this returns.

        Raises as `work`, `AlreadyExists` where another request had its id, `DataLoss`, `Unavailable`.
        """
        if (known := self.answered(request, read)) is not None:
            return known
        answer = self._transact(request, work, read, lambda _: self.clock())
        self.remember()
        return answer

    def accept(self, request: Request, work: Work, read: Reader[Answer]) -> Answer:
        """Carry out an analyst's request, of which there are many: the guard knows of it after `catch_up`.

        Its time is now, but after all else that this analyst has asked for, also where the clock was set back: no
        two of its requests have one time, so that the newest receipt counts.
        """

        def time(connection: Connection) -> datetime:
            now, last = self.clock(), last_time(connection, request.caller)
            return now if last is None else max(now, last + timedelta(microseconds=1))

        if (known := self.answered(request, read)) is not None:
            return known
        answer = self._transact(request, work, read, time)
        self._behind.set()
        return answer

    def catch_up(self) -> None:
        """Let the guard know of the requests that were accepted since this was done last."""
        if self._behind.is_set():
            self._behind.clear()
            self.remember()

    def _transact(
        self, request: Request, work: Work, read: Reader[Answer], time: Callable[[Connection], datetime]
    ) -> Answer:
        with committing(self.store, request.method) as connection:
            # Asked again, now that nothing else can be written.
            kept = first_answer(connection, request)
            if kept is None:
                now = time(connection)
                kept = work(connection, now)
                keep_answer(connection, request, kept, now)
            return read(connection, kept)


def no_answer(_: Connection, __: str) -> None:
    """Reads the answer of an operation that has none."""
