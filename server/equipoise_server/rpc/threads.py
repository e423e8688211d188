"""Threads that callers share in rotation, so that no caller waits for all tasks of another caller."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, TypeVar

from equipoise.errors import EquipoiseError, InternalError
from equipoise_server.identity.policy import Rate

Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")


class SharedThreads:
    """A pool of threads, of which one caller uses at most a quarter. Waiting callers take turns.

    With `k` waiting callers, a caller's next task begins after at most `k - 1` tasks of others, however many tasks
    the others have. One event loop uses the pool; `close` waits for the running tasks.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(threads, name)
        self._free = threads
        self._share = max(1, threads // 4)
        self._running: Counter[str] = Counter()  # by certified name, so its size is bounded
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by caller, in the order of the turns

    async def run(
        self,
        caller: str,
        function: Callable[Parameters, Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Call `function` in a thread when it is the caller's turn, and return or raise its outcome.

        The objects of a call must be freed when the call ends and not at the next garbage collection: otherwise a
        caller who is refused again and again would fill the memory. So refusals lose their traceback and cause,
        which nobody logs. Unexpected errors keep both.
        """
        await self._turn(caller)
        # Keep the outcome in no variable: an error's traceback refers to this frame, which must not refer to the
        # error.
        return await self._start(caller, function, *args, **kwargs)

    def _start(
        self,
        caller: str,
        function: Callable[Parameters, Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> asyncio.Future[Result]:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Result] = loop.create_future()

        def work() -> None:
            try:
                settle = partial(outcome.set_result, function(*args, **kwargs))
            except BaseException as error:
                if isinstance(error, EquipoiseError) and not isinstance(error, InternalError):
                    error.__cause__ = error.__context__ = error.__traceback__ = None
                settle = partial(outcome.set_exception, error)
            loop.call_soon_threadsafe(ended, settle)

        def ended(settle: Callable[[], None]) -> None:
            self._end(caller)
            # A cancelled call ends at once, but its thread is free only when the function has ended.
            if not outcome.cancelled():
                settle()

        try:
            # asyncio's wrapper would form a reference cycle with the executor's future, so neither is used.
            self._executor.submit(work)
        except BaseException:
            self._end(caller)
            raise
        return outcome

    def close(self) -> None:
        """Wait until the threads have ended. Must not be called in the event loop's thread."""
        self._executor.shutdown()

    async def _turn(self, caller: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        self._give()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # The caller had got a thread already: give it back.
                self._end(caller)
            raise

    def _give(self) -> None:
        """Give every free thread to the caller whose turn it is, who then moves to the end of the rotation."""
        while self._free and (caller := self._next()) is not None:
            turns = self._waiting.pop(caller)
            turn = turns.popleft()
            if turns:
                self._waiting[caller] = turns
            if not turn.cancelled():
                self._free -= 1
                self._running[caller] += 1
                turn.set_result(None)

    def _next(self) -> str | None:
        return next((caller for caller in self._waiting if self._running[caller] < self._share), None)

    def _end(self, caller: str) -> None:
        self._free += 1
        self._running[caller] -= 1
        self._give()


@dataclass(frozen=True)
class Threads:
    """The threads for short look-ups, and the threads for everything that takes longer."""

    reading: SharedThreads
    working: SharedThreads

    def of(self, rate: Rate) -> SharedThreads:
        """Return the threads that answer calls of a kind."""
        return self.reading if rate in (Rate.READ, Rate.STREAM) else self.working

    def close(self) -> None:
        """Close both pools."""
        self.reading.close()
        self.working.close()
