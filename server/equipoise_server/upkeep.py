"""The background tasks of a server: takes rounds over, keeps the schedule, looks after keys and certificates."""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

from equipoise.errors import EquipoiseError
from equipoise_server.admin.authority_exchange import retire_at_end
from equipoise_server.admin.live_deployment import LiveDeployment
from equipoise_server.clock import Clock
from equipoise_server.rounds.clock_watch import ClockWatch
from equipoise_server.rounds.lifecycle import Lifecycle
from equipoise_server.rounds.schedule import Schedule
from equipoise_server.sessions.calendar import Calendar
from equipoise_server.sessions.service import Sessions

TAKE_OVER_SECONDS = 2  # how often a server looks for rounds whose server has died
SCHEDULE_SECONDS = 0.5  # how late a round may be sealed; workloads are refused from the closing time itself on
OVERLAP_SECONDS = 5  # how late an old authority may be retired
DAY_SECONDS = 86_400

_log = structlog.get_logger("equipoise.app")


async def take_over(lifecycle: Lifecycle, stopping: asyncio.Event) -> None:
    """Runs the rounds of servers that have died, until this one is told to stop."""
    while not stopping.is_set():
        try:
            await asyncio.wait_for(stopping.wait(), TAKE_OVER_SECONDS)
        except TimeoutError:
            try:
                await asyncio.to_thread(lifecycle.take_over)
            except EquipoiseError as error:
                _log.warning("not_taken_over", problem=error.message)
            except Exception as error:
                # For example, the machine has no room for a worker. Analysts are served, and the loop tries again.
                _log.error("not_taken_over", kind=type(error).__name__)


async def keep_schedule(
    schedule: Schedule, sessions: Sessions, calendar: Calendar, stopping: asyncio.Event
) -> None:
    """Takes all due steps until the server is told to stop. A step that fails stays due, and is tried again."""
    while not stopping.is_set():
        try:
            await asyncio.to_thread(schedule.keep)
            await asyncio.to_thread(sessions.loops.look_after)
            await asyncio.to_thread(calendar.keep)
        except EquipoiseError as error:
            _log.error("schedule_not_kept", problem=error.message)
        except Exception as error:
            # Other rounds must not wait for ever. The error's text may contain private data: log only its type.
            _log.error("schedule_not_kept", kind=type(error).__name__)
        try:
            await asyncio.wait_for(stopping.wait(), SCHEDULE_SECONDS)
        except TimeoutError:
            continue


async def end_overlap(state: Path, watch: ClockWatch, stopping: asyncio.Event) -> None:
    """Retires an old authority at the time that was stated at its exchange, until the server is told to stop.

    Whoever is locked out stays locked out, so nothing is retired by a clock that is not trusted.
    """
    while not stopping.is_set():
        try:
            ended = await asyncio.to_thread(retire_at_end, state, watch.now)
            if ended is not None:
                _log.warning("authority_retired", certificates=ended.certificates)
        except EquipoiseError as error:
            _log.error("authority_not_retired", problem=error.message)
        except Exception as error:
            # For example, the disk is full. What the old authority signed works on, and the loop tries again.
            _log.error("authority_not_retired", kind=type(error).__name__)
        try:
            await asyncio.wait_for(stopping.wait(), OVERLAP_SECONDS)
        except TimeoutError:
            continue


async def tell_of_expiry(live: LiveDeployment, clock: Clock) -> None:
    """Every day: without a valid certificate of the server, clients no longer connect."""
    while True:
        for problem in live.now().expiring(clock()):
            _log.warning("certificate_expires", problem=problem)
        await asyncio.sleep(DAY_SECONDS)
