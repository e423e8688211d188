"""Says in the server's log how far the reading of a table is, for operators who wait for a registration."""

from __future__ import annotations

import time

import structlog

from equipoise_server.datasets.progress import OnRead

LOG_SECONDS = 10.0

log = structlog.get_logger(__name__)


def logged(dataset: str, told: OnRead) -> OnRead:
    """Return what logs the progress of a reading, every ten seconds at most, and also tells `told` of it."""
    last = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last
        told(done, total)
        now = time.monotonic()
        if now - last >= LOG_SECONDS:
            last = now
            log.info("table_is_read", dataset=dataset, done=done, total=total)

    return progress
