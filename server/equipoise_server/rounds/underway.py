"""How far operators' requests have come that take long: registrations of tables, and plans.

An operator may look at its own requests only. Nothing of it is stored, and analysts have no such method.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from equipoise.model.rounds import Progress
from equipoise_server.datasets.progress import OnRead
from equipoise_server.mechanisms.interface import OnStep

READING, PLANNING = "reading the table", "planning"


class Underway:
    """The requests that this server is working on. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], Progress] = {}

    @contextmanager
    def followed(self, caller: str, request_id: str, phase: str) -> Iterator[OnStep]:
        """Keep how far a request is while the block runs; yields what tells it.

        Args:
            caller: who asks.
            request_id: the request's; empty: nobody follows it.
            phase: with which the request begins.
        """
        key = caller, request_id

        def tell(phase: str, done: int, total: int) -> None:
            if request_id:
                with self._lock:
                    self._known[key] = Progress(phase, done, total, 0.0, complete=False, peak_memory_bytes=0)

        tell(phase, 0, 0)
        try:
            yield tell
        finally:
            with self._lock:
                self._known.pop(key, None)

    def look(self, caller: str, request_id: str) -> Progress | None:
        """Return how far a caller's request is; None where this server is not working on it."""
        with self._lock:
            return self._known.get((caller, request_id))


def of_reading(step: OnStep) -> OnRead:
    """Return what tells of a reading as a phase of a request."""
    return lambda done, total: step(READING, done, total)
