"""Confirms the clock for the holder of the state directory, also while servers run."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.clock import Clock, system_clock
from equipoise_server.rounds import clock_watch


def confirm_clock(state: Path, clock: Clock = system_clock) -> tuple[datetime | None, datetime]:
    """Record that the clock is right, and return the last time that was recorded before, and the present time.

    Running servers notice the confirmation within a second.
    """
    now = clock()
    deployment = open_deployment(state, now)
    store = deployment.open_store()
    try:
        deployment.guard.advance(store)
        with store.write() as connection:
            recorded = clock_watch.read_recorded(connection)
            clock_watch.confirm(connection, now)
    finally:
        store.close()
    return None if recorded is None else recorded.time, now
