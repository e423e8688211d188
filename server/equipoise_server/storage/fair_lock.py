"""A fair lock: the thread that has waited longest gets it next.

A `threading.Lock` often goes to the thread that has just released it. A thread that writes a round's results, part
after part, would then keep submissions waiting until it is done.
"""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType


class Turns:
    """A lock as a context manager, which threads enter one at a time, in the order of arrival. Not reentrant."""

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
                # Hand the lock over while it is taken, so that no other thread can take it in between.
                self._waiting.popleft().set()
            else:
                self._taken = False
