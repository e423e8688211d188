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
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import grpc
import structlog
from grpc import aio
from sqlalchemy import select

from equipoise.errors import EquipoiseError, InvalidArgument
from equipoise.v1 import analyst_pb2, auditor_pb2, operator_pb2
from equipoise_server.admin.state_directory import Deployment, create_state, open_deployment
from equipoise_server.clock import Clock, system_clock
from equipoise_server.config import CONFIG_FILE, Config
from equipoise_server.identity.admission import Admission
from equipoise_server.identity.authority import certificate_to_pem
from equipoise_server.identity.registry import Registry
from equipoise_server.logs import log_to_stderr
from equipoise_server.memory import share_heaps
from equipoise_server.rounds.lifecycle import Lifecycle
from equipoise_server.rounds.schedule import Schedule
from equipoise_server.rounds.services import RoundServices, round_services
from equipoise_server.rpc.configured import asking_limits, call_limits, options
from equipoise_server.rpc.health import health_served
from equipoise_server.rpc.interceptors.authentication import authentication, check_role
from equipoise_server.rpc.interceptors.call_limits import call_limit
from equipoise_server.rpc.interceptors.error_translation import hide_errors
from equipoise_server.rpc.interceptors.interceptor import GuardInterceptor
from equipoise_server.rpc.interceptors.metrics import Metrics
from equipoise_server.rpc.interceptors.refused_certificates import Refusals
from equipoise_server.rpc.methods import Serving, bind
from equipoise_server.rpc.services.analyst import AnalystMethods
from equipoise_server.rpc.services.auditor import AuditorMethods
from equipoise_server.rpc.services.operator import OperatorMethods
from equipoise_server.rpc.services.session_stream import Asking
from equipoise_server.rpc.services.synopsis_stream import Synopses
from equipoise_server.rpc.services.uploads import Uploads
from equipoise_server.rpc.threads import SharedThreads, Threads
from equipoise_server.sessions.service import Sessions
from equipoise_server.storage.crash_points import Hook, told
from equipoise_server.storage.store import Store
from equipoise_server.transparency.log import check_log
from equipoise_server.transparency.seed_encryption import SeedSource, system_seeds
from equipoise_server.transparency.sequencing import Sequencer
from equipoise_server.transparency.views import LogViews

__all__ = ["create_state", "serve"]

THREADS = 8  # for what is not done for one caller: the schedule, the state of the store
AUTHENTICATING_THREADS = 8  # for finding out who calls
TAKE_OVER_SECONDS = 2  # how often a server looks for rounds whose server has died
SCHEDULE_SECONDS = 0.5  # how late a round may be sealed; workloads are refused from the closing time itself on
DAY_SECONDS = 86_400
SERVICES = (
    analyst_pb2.DESCRIPTOR.services_by_name["AnalystService"],
    operator_pb2.DESCRIPTOR.services_by_name["OperatorService"],
    auditor_pb2.DESCRIPTOR.services_by_name["AuditorService"],
)

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
    share_heaps()
    deployment = open_deployment(state, clock(), listen)
    log_to_stderr(deployment.config.log_level)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "equipoise"))
    stopping = asyncio.Event()
    with deployment.held(), _stopped_by_signals(stopping), told(crash_hook):
        store = await asyncio.to_thread(deployment.open_store)
        try:
            async with (
                _threads(deployment.config) as threads,
                _authenticating() as authenticating,
                _rounds(deployment, store, seeds, clock) as rounds,
                _sessions(deployment, rounds) as sessions,
                _watched(deployment, store, stopping) as metrics,
            ):
                server = _server(
                    deployment, store, rounds, sessions, clock, stopping, threads, authenticating, metrics
                )
                await asyncio.to_thread(_check_log, deployment, store)
                port = _bind(server, deployment)
                # Bound before recovery, so that a taken port is known at once; started after it, so that no
                # call meets a round that has not been looked after.
                await asyncio.to_thread(rounds.lifecycle.recover)
                await server.start()
                schedule = asyncio.create_task(_keep_schedule(rounds.schedule, sessions, stopping))
                expiry = asyncio.create_task(_tell_of_expiry(deployment, clock))
                _log.info("serving", listen=deployment.config.listen, port=port)
                if ready is not None:
                    ready(port)
                try:
                    await _taking_over(rounds.lifecycle, stopping)
                    await schedule
                finally:
                    schedule.cancel()
                    expiry.cancel()
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
async def _watched(deployment: Deployment, store: Store, stopping: asyncio.Event) -> AsyncIterator[Metrics]:
    """The metrics, offered with the health of the server where the configuration says."""
    config, metrics = deployment.config, Metrics(store)

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


async def _taking_over(lifecycle: Lifecycle, stopping: asyncio.Event) -> None:
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
                # A machine without room for a worker, for one: analysts are served, and it is tried again.
                _log.error("not_taken_over", kind=type(error).__name__)


async def _keep_schedule(schedule: Schedule, sessions: Sessions, stopping: asyncio.Event) -> None:
    """Looks for what is due until the server is told to stop. What fails stays due, and is tried again."""
    while not stopping.is_set():
        try:
            await asyncio.to_thread(schedule.keep)
            await asyncio.to_thread(sessions.loops.look_after)
        except EquipoiseError as error:
            _log.error("schedule_not_kept", problem=error.message)
        except Exception as error:
            # Whatever it is, the other rounds must not wait for ever. Its text may hold what nobody may read here.
            _log.error("schedule_not_kept", kind=type(error).__name__)
        try:
            await asyncio.wait_for(stopping.wait(), SCHEDULE_SECONDS)
        except TimeoutError:
            continue


async def _tell_of_expiry(deployment: Deployment, clock: Clock) -> None:
    """Every day: without a valid certificate of the server, clients no longer connect."""
    while True:
        for problem in deployment.expiring(clock()):
            _log.warning("certificate_expires", problem=problem)
        await asyncio.sleep(DAY_SECONDS)


def _server(
    deployment: Deployment,
    store: Store,
    rounds: RoundServices,
    sessions: Sessions,
    clock: Clock,
    stopping: asyncio.Event,
    threads: Threads,
    authenticating: SharedThreads,
    metrics: Metrics,
) -> aio.Server:
    config = deployment.config
    admission = Admission(Registry(rounds.operations), deployment.authority, config.certificate_days)
    registry = admission.registry
    guards = (
        hide_errors,
        metrics.guard(),
        authentication(
            registry,
            config.deployment,
            clock,
            authenticating,
            Refusals(config.refusals_per_second, config.burst_seconds),
        ),
        # Before the role: calls that are refused for it cost the server, and lines of the log, as others do.
        call_limit(call_limits(config)),
        check_role,
    )
    server = aio.server(interceptors=[GuardInterceptor(guard) for guard in guards], options=options(config))
    uploads = Uploads(config.workload_limit_bytes, config.upload_total_bytes, registry.count, threads.reading)

    def log_keys() -> str:
        with store.read() as connection:
            return deployment.signer.lines(connection)

    asking = Asking(sessions, threads, stopping, asking_limits(config))
    analyst, operator, auditor = SERVICES
    services = {
        analyst: AnalystMethods(
            rounds.datasets,
            rounds.submissions,
            rounds.analyst_views,
            asking,
            Synopses(rounds.analyst_views, rounds.datasets, store),
            uploads,
            threads,
            stopping,
        ),
        operator: OperatorMethods(rounds, sessions, admission, log_keys, threads, stopping),
        auditor: AuditorMethods(rounds.views, rounds.budgets, rounds.seeds, LogViews(store)),
    }
    server.add_generic_rpc_handlers(tuple(bind(services, Serving(threads, config.stall_seconds))))
    return server


def _bind(server: aio.Server, deployment: Deployment) -> int:
    credentials = grpc.ssl_server_credentials(
        [(deployment.server_key_pem, certificate_to_pem(deployment.server_certificate))],
        root_certificates=deployment.authority.pem,
        require_client_auth=True,
    )
    listen = deployment.config.listen
    try:
        port = server.add_secure_port(listen, credentials)
    except RuntimeError:
        port = 0
    if not port:
        field = f"{deployment.state / CONFIG_FILE}: listen"
        raise InvalidArgument(field, f"cannot listen on {listen}; is another server running there?")
    return port


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
