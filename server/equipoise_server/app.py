"""The composition root: the one place where a server is put together, run and taken down again.

    asyncio.run(serve(Path("state")))

Tests give a `seeds` source, a `clock`, and a hook that is told of every crash point; no call, option or
configuration of a running server takes any of them.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import structlog
from sqlalchemy import select

from equipoise_server.admin.live_deployment import LiveDeployment
from equipoise_server.admin.state_directory import Deployment, open_deployment
from equipoise_server.clock import Clock, system_clock
from equipoise_server.config import Config
from equipoise_server.config_file import CONFIG_FILE
from equipoise_server.logs import log_to_stderr
from equipoise_server.memory import share_heaps
from equipoise_server.rounds.services import RoundServices, round_services
from equipoise_server.rpc.grpc_version import check_grpc
from equipoise_server.rpc.health import health_served
from equipoise_server.rpc.interceptors.gauges import CertificateGauge, FailedRuns, StoreGauges
from equipoise_server.rpc.interceptors.metrics import Metrics
from equipoise_server.rpc.login_door import door_served
from equipoise_server.rpc.ports import allow_descriptors, bind_port
from equipoise_server.rpc.server import SERVICES, make_server
from equipoise_server.rpc.threads import SharedThreads, Threads
from equipoise_server.sessions.calendar import Calendar
from equipoise_server.sessions.service import Sessions
from equipoise_server.storage.crash_points import Hook, install_hook
from equipoise_server.storage.store import Store
from equipoise_server.transparency.log import check_log
from equipoise_server.transparency.seed_encryption import SeedSource, system_seeds
from equipoise_server.transparency.sequencing import Sequencer
from equipoise_server.upkeep import end_overlap, keep_schedule, take_over, tell_of_expiry

THREADS = 8  # for what is not done for one caller: the schedule, the state of the store
AUTHENTICATING_THREADS = 8  # for finding out who calls
_log = structlog.get_logger("equipoise.app")


async def serve(
    state: Path,
    *,
    seeds: SeedSource = system_seeds,
    clock: Clock = system_clock,
    ready: Callable[[int], None] | None = None,
    listen: str | None = None,
    crash_hook: Hook | None = None,
) -> None:
    """Serves the deployment in `state` until SIGTERM or SIGINT, then lets open calls end and stops.

    `listen` takes the place of the configured address; `ready` is called with the port once calls are accepted.
    Raises `InvalidArgument` for anything wrong with the directory, and where the address or the store is in use by
    another server; several servers can share a PostgreSQL, and then the directory, too.
    """
    check_grpc()
    share_heaps()
    deployment = open_deployment(state, clock(), listen)
    live = LiveDeployment(deployment, clock)
    log_to_stderr(deployment.config.log_level)
    allow_descriptors(deployment.config)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "equipoise"))
    stopping = asyncio.Event()
    with deployment.hold(), _stopped_by_signals(stopping), install_hook(crash_hook):
        store = await asyncio.to_thread(deployment.open_store)
        try:
            async with (
                _threads(deployment.config) as threads,
                _authenticating() as authenticating,
                _rounds(deployment, store, seeds, clock) as rounds,
                _sessions(deployment, rounds) as sessions,
                _watched(live, rounds, clock, stopping) as metrics,
                AsyncExitStack() as stack,
            ):
                server, admission = make_server(
                    deployment.config,
                    lambda: live.now().authority,
                    partial(_log_keys, deployment, store),
                    rounds,
                    sessions,
                    stopping,
                    threads,
                    authenticating,
                    metrics,
                )
                await asyncio.to_thread(_check_log, deployment, store)
                settings = deployment.state / CONFIG_FILE
                port = bind_port(server, deployment.config.listen, f"{settings}: listen", live.credentials())
                # Bound before recovery, so that a taken port is known at once; started after it, so that no
                # call meets a round that has not been looked after.
                await asyncio.to_thread(rounds.lifecycle.recover)
                await server.start()
                strangers = live.credentials(of_clients=False)
                calendar = Calendar(rounds.operations, rounds.opening, sessions)
                await stack.enter_async_context(door_served(deployment.config, settings, strangers, admission))
                schedule = asyncio.create_task(keep_schedule(rounds.schedule, sessions, calendar, stopping))
                expiry = asyncio.create_task(tell_of_expiry(live, clock))
                overlap = asyncio.create_task(end_overlap(state, rounds.schedule.watch, stopping))
                _log.info("serving", listen=deployment.config.listen, port=port)
                if ready is not None:
                    ready(port)
                try:
                    await take_over(rounds.lifecycle, stopping)
                    await asyncio.gather(schedule, overlap)
                finally:
                    for task in (schedule, expiry, overlap):
                        task.cancel()
                    _log.info("stopping", seconds=deployment.config.drain_seconds)
                    await server.stop(deployment.config.drain_seconds)
        finally:
            await asyncio.to_thread(store.close)
    _log.info("stopped")


def _check_log(deployment: Deployment, store: Store) -> None:
    """Refuse to start if signing keys are missing or the log fails verification."""
    with store.read() as connection:
        deployment.signer.check(connection)
        check_log(connection)


def _log_keys(deployment: Deployment, store: Store) -> str:
    with store.read() as connection:
        return deployment.signer.lines(connection)


@asynccontextmanager
async def _threads(config: Config) -> AsyncIterator[Threads]:
    threads = Threads(
        SharedThreads(config.reading_threads, "reading"), SharedThreads(config.working_threads, "working")
    )
    try:
        yield threads
    finally:
        await asyncio.to_thread(threads.close)


@asynccontextmanager
async def _authenticating() -> AsyncIterator[SharedThreads]:
    threads = SharedThreads(AUTHENTICATING_THREADS, "authenticating")
    try:
        yield threads
    finally:
        await asyncio.to_thread(threads.close)


@asynccontextmanager
async def _watched(
    live: LiveDeployment, rounds: RoundServices, clock: Clock, stopping: asyncio.Event
) -> AsyncIterator[Metrics]:
    """The metrics, offered with the health of the server where the configuration says."""
    config, store = live.now().config, rounds.context.store
    certificates = CertificateGauge(lambda: live.now().certificate_ends, clock)
    metrics = Metrics([StoreGauges(store), certificates, FailedRuns(lambda: rounds.runner.failed)])

    def look() -> None:
        with store.read() as connection:
            connection.execute(select(1))

    names = [service.full_name for service in SERVICES]
    async with (
        metrics.served(config.metrics_listen) as metrics_port,
        health_served(config.health_listen, names, look, stopping) as health_port,
    ):
        if metrics_port or health_port:
            _log.info("watched", health_port=health_port, metrics_port=metrics_port)
        yield metrics


@asynccontextmanager
async def _rounds(
    deployment: Deployment, store: Store, seeds: SeedSource, clock: Clock
) -> AsyncIterator[RoundServices]:
    rounds = round_services(
        store,
        deployment.config.data_path(deployment.state),
        deployment.storage_key,
        clock=clock,
        seed_source=seeds,
        release_grid_seconds=deployment.config.release_grid_seconds,
        guard=deployment.guard,
        sequencer=Sequencer(store, deployment.guard, deployment.signer),
        deployment=deployment.config.deployment,
        retention_days=deployment.config.retention_days,
        audit_window_days=deployment.config.audit_window_days,
        absence_days=deployment.config.absence_days,
        worker_idle_seconds=deployment.config.worker_idle_seconds,
    )
    try:
        yield rounds
    finally:
        # A worker that runs now is ended; its round stays RUNNING and is run again at the next start.
        await asyncio.to_thread(rounds.lifecycle.close)


@asynccontextmanager
async def _sessions(deployment: Deployment, rounds: RoundServices) -> AsyncIterator[Sessions]:
    sessions = Sessions(rounds.context, rounds.opening, rounds.lifecycle, deployment.guard)
    try:
        yield sessions
    finally:
        # Those that are open stay so, and are answered again from where they are at the next start.
        await asyncio.to_thread(sessions.loops.stop)


@contextmanager
def _stopped_by_signals(stopping: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, stopping.set)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
