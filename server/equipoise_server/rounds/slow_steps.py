"""Steps that may take long, each in a thread of its own, so that no other step waits for them for long.

Before a round runs, its table is looked at. A database reads a large table for minutes, or waits for a lock.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

PATIENCE_SECONDS = 10.0


class SlowSteps:
    """The threads that take steps now, at most one a round.

    A thread ends with its process: until a step is written, nothing has happened.
    """

    def __init__(self, patience: float = PATIENCE_SECONDS) -> None:
        self._patience = patience
        self._threads: dict[str, Thread] = {}

    def take(self, round_id: str, step: Callable[[], None]) -> None:
        """Take a round's step, and wait for it; no longer than the patience, after which it goes on by itself.

        Nothing is done while an earlier step of the round goes on. One thread alone may call this.

        Args:
            round_id: whose step it is.
            step: takes it. It handles its own errors.
        """
        self._threads = {each: thread for each, thread in self._threads.items() if thread.is_alive()}
        if round_id in self._threads:
            return
        thread = self._threads[round_id] = Thread(target=step, name=f"step of {round_id}", daemon=True)
        thread.start()
        thread.join(self._patience)
