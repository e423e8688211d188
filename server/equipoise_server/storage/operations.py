"""Operations: requests that change something, each carried out once, in one transaction.

    def work(connection, now): ...      # changes the store; returns what to keep of the answer, as text
    def read(connection, kept): ...     # makes the answer of the kept text, also when the request is repeated
    operations.carry_out(request, work, read)

The request's method names the operation and its two crash points. After a crash before the commit nothing has
happened, and the same request will be carried out. After the commit the same request gets the same answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import Connection

from equipoise_server.storage.crash_points import CrashPoint, reached
from equipoise_server.storage.idempotency import Request, last_time, store_response, stored_response
from equipoise_server.storage.store import Store

Answer = TypeVar("Answer")
Work = Callable[[Connection, datetime], str]
Reader = Callable[[Connection, str], Answer]


@contextmanager
def committing(store: Store, name: str) -> Iterator[Connection]:
    """Open a writing transaction with the crash points of this name, before its commit and after it."""
    with store.write() as connection:
        yield connection
        reached(CrashPoint(f"{name} written"))
    reached(CrashPoint(f"{name} committed"))


class Operations:
    """The operations on one store. Safe to use from several threads.

    `remember` advances the rollback guard to the state of the store, so that no older copy of the store is accepted
    afterwards; it raises `DataLoss` and `Unavailable`. `time` returns the time of a caller's request, or raises
    `Unavailable` where nothing may be changed now; without it, that is the time of `clock`.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], datetime],
        remember: Callable[[], None],
        time: Callable[[Connection, str], datetime] | None = None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.remember = remember
        self.time = time or (lambda _, __: clock())
        self._behind = threading.Event()  # set while accepted requests are ahead of the guard

    def answered(self, request: Request, read: Reader[Answer]) -> Answer | None:
        """Return the answer to a request that was carried out before; None for a new one.

        The guard knows of the request when the answer is returned.

        Raises:
            AlreadyExists: another request had the same id.
            DataLoss: the guard refuses the store.
            Unavailable: the guard cannot be advanced now.
        """
        with self.store.read() as connection:
            kept = stored_response(connection, request)
            if kept is None:
                return None
            answer = read(connection, kept)
        # The server that carried the request out may have died, or failed, before it advanced the guard.
        self.remember()
        return answer

    def carry_out(self, request: Request, work: Work, read: Reader[Answer]) -> Answer:
        """Carry a request out, unless it was carried out before, and advance the guard before returning.

        Args:
            request: the request.
            work: changes the store in the given transaction, at the given time, and returns the text to keep.
            read: makes the answer of the kept text.

        Returns:
            The answer: for a repeated request, the first answer.

        Raises:
            AlreadyExists: another request had the same id.
            DataLoss: the guard refuses the store.
            Unavailable: the store or the guard cannot be used now, or there is no time that can be trusted.
            EquipoiseError: as `work` raises.
        """
        if (known := self.answered(request, read)) is not None:
            return known
        answer = self._transact(request, work, read, lambda connection: self.time(connection, request.caller))
        self.remember()
        return answer

    def accept(self, request: Request, work: Work, read: Reader[Answer]) -> Answer:
        """Carry out an analyst's request, but leave the guard to `catch_up`, because such requests are many.

        The request's time is now, but later than all earlier requests of the analyst, even if the clock was set
        back. So no two receipts of an analyst have the same time, and the newest one counts. Arguments and errors
        are those of `carry_out`.
        """

        def time(connection: Connection) -> datetime:
            now, last = self.time(connection, request.caller), last_time(connection, request.caller)
            return now if last is None else max(now, last + timedelta(microseconds=1))

        if (known := self.answered(request, read)) is not None:
            return known
        answer = self._transact(request, work, read, time)
        self._behind.set()
        return answer

    def catch_up(self) -> None:
        """Advance the guard, if requests were accepted since the last call."""
        if self._behind.is_set():
            self._behind.clear()
            self.remember()

    def _transact(
        self, request: Request, work: Work, read: Reader[Answer], time: Callable[[Connection], datetime]
    ) -> Answer:
        with committing(self.store, request.method) as connection:
            # Look again inside the transaction, in which nothing else can be written.
            kept = stored_response(connection, request)
            if kept is None:
                now = time(connection)
                kept = work(connection, now)
                store_response(connection, request, kept, now)
            return read(connection, kept)


def no_answer(_: Connection, __: str) -> None:
    """Read the answer of an operation that has none."""
