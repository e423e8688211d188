"""Threads that callers share: each takes its turn, so that nobody waits for all that another has asked for."""

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
    """A number of threads, of which one caller has at most a quarter; those who wait go in rotation.

    With `k` callers waiting, a caller's next task begins after at most `k - 1` tasks of others, however many tasks
    they have. Used by one event loop; `close` waits for what is running.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(threads, name)
        self._free = threads
        self._share = max(1, threads // 4)
        self._running: Counter[str] = Counter()  # of certified names, so it does not grow without end
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # in the order of whose turn it is

    async def run(
        self,
        caller: str,
        function: Callable[Parameters, Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Return what `function` gives or raises, called in a thread when it is the caller's turn.

        What it held is let go of with the call, and not when garbage is next collected: a caller that is refused
        again and again would fill the memory. So a refusal, whose place in the code nobody logs, comes without
        traceback and cause; only unexpected errors keep theirs.
        """
        await self._turn(caller)
        # In no variable: an error's traceback leads to this frame, which must not lead back to the error.
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
            # A call that is cancelled goes at once, its thread only when the function has ended.
            if not outcome.cancelled():
                settle()

        try:
            # The executor's own future stays in a cycle with what asyncio would wrap it in.
            self._executor.submit(work)
        except BaseException:
            self._end(caller)
            raise
        return outcome

    def close(self) -> None:
        """Waits until the threads have ended. Not to be called in the event loop's thread."""
        self._executor.shutdown()

    async def _turn(self, caller: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        self._give()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # It was this caller's turn already.
                self._end(caller)
            raise

    def _give(self) -> None:
        """Gives every free thread to whoever's turn it is, who then goes to the end of the rotation."""
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
    """Those for look-ups, which are short, and those for all that takes longer: neither waits for the other."""

    reading: SharedThreads
    working: SharedThreads

    def of(self, rate: Rate) -> SharedThreads:
        """Return those in which calls of a kind are answered."""
        return self.reading if rate in (Rate.READ, Rate.STREAM) else self.working

    def close(self) -> None:
        """Closes both."""
        self.reading.close()
        self.working.close()
