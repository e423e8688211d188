"""Turns: a lock that goes to whoever has waited longest.

`threading.Lock` goes to whoever comes first after its release, which is often the thread that has just had it. One
that writes a round's results, part after part, would keep submits waiting until it is done.
"""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType


class Turns:
    """A context that one thread is in at a time, in the order in which they came. Not reentrant."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Event] = deque()

    def __enter__(self) -> None:
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            called = threading.Event()
            self._waiting.append(called)
        called.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._guard:
            if self._waiting:
                # Handed over while it is taken, so that nobody can come in between.
                self._waiting.popleft().set()
            else:
                self._taken = False
