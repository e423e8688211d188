"""The composition root: the one place where a server is put together, run and taken down again.

    asyncio.run(serve(Path("state")))

Tests give a `seeds` source, a `clock`, and a hook that is told of every crash point; no call, option or
configuration of a running server takes any of them.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TextIO, cast

import grpc
import structlog
from grpc import aio

from equipoise.errors import EquipoiseError, InvalidArgument
from equipoise.v1 import analyst_pb2, auditor_pb2, operator_pb2
from equipoise_server.config import CONFIG_FILE, Config
from equipoise_server.identity.authority import certificate_to_pem
from equipoise_server.identity.registry import Registry
from equipoise_server.rounds.clock import Clock, system_clock
from equipoise_server.rounds.custody import SeedSource, system_seeds
from equipoise_server.rounds.service import Rounds
from equipoise_server.rpc.analyst import AnalystMethods
from equipoise_server.rpc.auditor import AuditorMethods
from equipoise_server.rpc.authentication import authentication
from equipoise_server.rpc.authorisation import check_role
from equipoise_server.rpc.guards import GuardInterceptor
from equipoise_server.rpc.limits import call_limit
from equipoise_server.rpc.methods import bind
from equipoise_server.rpc.operator import OperatorMethods
from equipoise_server.rpc.shield import hide_errors
from equipoise_server.rpc.synopsis import Synopses
from equipoise_server.state import Deployment, create_state, open_deployment
from equipoise_server.storage.crash_points import Hook, told
from equipoise_server.storage.store import Store

__all__ = ["create_state", "serve"]

STDERR = 2
THREADS = 16  # calls that wait for the store or compile a workload at the same time
METADATA_BYTES = 16 * 1024
IDENTITY_ONLY = 1  # the set of compression algorithms that has only the one that does nothing
TAKE_OVER_SECONDS = 2  # how often a server looks for rounds whose server has died
SCHEDULE_SECONDS = 0.5  # how late a round may be sealed; workloads are refused from the closing time itself on
DAY_SECONDS = 86_400
GRACE_SECONDS = 600  # how long a call may outlive its connection's renewal

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
    deployment = open_deployment(state, clock(), listen)
    _log_to_stderr(deployment.config.log_level)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "equipoise"))
    stopping = asyncio.Event()
    with deployment.held(), _stopped_by_signals(stopping), told(crash_hook):
        store = await asyncio.to_thread(deployment.open_store)
        try:
            async with _rounds(deployment, store, seeds, clock) as rounds:
                server = _server(deployment, store, rounds, clock, stopping)
                port = _bind(server, deployment)
                # Bound before recovery, so that a taken port is known at once; started after it, so that no
                # call meets a round that has not been looked after.
                await asyncio.to_thread(rounds.recover)
                await server.start()
                schedule = asyncio.create_task(_keep_schedule(rounds, stopping))
                expiry = asyncio.create_task(_tell_of_expiry(deployment, clock))
                _log.info("serving", listen=deployment.config.listen, port=port)
                if ready is not None:
                    ready(port)
                try:
                    await _taking_over(rounds, stopping)
                    await schedule
                finally:
                    schedule.cancel()
                    expiry.cancel()
                    _log.info("stopping", seconds=deployment.config.drain_seconds)
                    await server.stop(deployment.config.drain_seconds)
        finally:
            await asyncio.to_thread(store.close)
    _log.info("stopped")


@asynccontextmanager
async def _rounds(deployment: Deployment, store: Store, seeds: SeedSource, clock: Clock) -> AsyncIterator[Rounds]:
    rounds = Rounds(
        store,
        deployment.config.data_path(deployment.state),
        deployment.storage_key,
        clock=clock,
        seeds=seeds,
        release_grid_seconds=deployment.config.release_grid_seconds,
        guard=deployment.guard,
        retention_days=deployment.config.retention_days,
    )
    try:
        yield rounds
    finally:
        # A worker that runs now is ended; its round stays RUNNING and is run again at the next start.
        await asyncio.to_thread(rounds.close)


async def _taking_over(rounds: Rounds, stopping: asyncio.Event) -> None:
    """Runs the rounds of servers that have died, until this one is told to stop."""
    while not stopping.is_set():
        try:
            await asyncio.wait_for(stopping.wait(), TAKE_OVER_SECONDS)
        except TimeoutError:
            try:
                await asyncio.to_thread(rounds.take_over)
            except EquipoiseError as error:
                _log.warning("not_taken_over", problem=error.message)
            except Exception as error:
                # A machine without room for a worker, for one: analysts are served, and it is tried again.
                _log.error("not_taken_over", kind=type(error).__name__)


async def _keep_schedule(rounds: Rounds, stopping: asyncio.Event) -> None:
    """Looks for what is due until the server is told to stop. What fails stays due, and is tried again."""
    while not stopping.is_set():
        try:
            await asyncio.to_thread(rounds.keep_schedule)
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
    deployment: Deployment, store: Store, rounds: Rounds, clock: Clock, stopping: asyncio.Event
) -> aio.Server:
    config = deployment.config
    registry = Registry(store)
    guards = (
        hide_errors,
        authentication(registry, config.deployment, clock),
        check_role,
        call_limit(config.calls_per_caller, config.uploads_per_caller),
    )
    server = aio.server(interceptors=[GuardInterceptor(guard) for guard in guards], options=_options(config))
    services = {
        analyst_pb2.DESCRIPTOR.services_by_name["AnalystService"]: AnalystMethods(
            rounds, Synopses(rounds, store), config.workload_limit_bytes, stopping
        ),
        operator_pb2.DESCRIPTOR.services_by_name["OperatorService"]: OperatorMethods(
            rounds, registry, deployment.authority, config.certificate_days, clock, stopping
        ),
        auditor_pb2.DESCRIPTOR.services_by_name["AuditorService"]: AuditorMethods(rounds),
    }
    server.add_generic_rpc_handlers(tuple(bind(services)))
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


def _options(config: Config) -> list[tuple[str, int]]:
    """gRPC's settings, where its own are unsafe for a server that strangers can reach."""
    return [
        # With port sharing, a second server would silently take half of the connections.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", config.message_limit_bytes),
        # A compressed message is held whole, unpacked, before its length is looked at. Nobody need compress.
        ("grpc.compression_enabled_algorithms_bitset", IDENTITY_ONLY),
        ("grpc.max_concurrent_streams", config.streams_per_connection),
        ("grpc.max_metadata_size", METADATA_BYTES),
        ("grpc.absolute_max_metadata_size", METADATA_BYTES),
        ("grpc.server_handshake_timeout_ms", config.handshake_seconds * 1000),
        ("grpc.max_connection_age_ms", config.connection_seconds * 1000),
        ("grpc.max_connection_age_grace_ms", GRACE_SECONDS * 1000),
        # A peer that has gone without a word is noticed, and one that floods with pings is cut off.
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
        ("grpc.http2.max_ping_strikes", 3),
    ]


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


def _log_to_stderr(level: str) -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", _StandardError())),
    )


class _StandardError(io.TextIOBase):
    """Standard error, which no answer may depend on: what cannot be written, as where a disk is full, is dropped.

    Unbuffered, as what waits in a buffer would be written again, and fail again, at the end of the process.
    """

    def write(self, text: str) -> int:
        with suppress(OSError):
            os.write(STDERR, text.encode())
        return len(text)
