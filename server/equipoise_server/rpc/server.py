"""Builds the gRPC server: the three services, behind their guards, with their threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from grpc import aio

from equipoise.v1 import analyst_pb2, auditor_pb2, operator_pb2
from equipoise_server.config import Config
from equipoise_server.identity.admission import Admission
from equipoise_server.identity.authority import Authority
from equipoise_server.rounds.services import RoundServices
from equipoise_server.rpc.configured import call_limits, call_rates, options, session_stream_limits
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
from equipoise_server.rpc.services.session_stream import SessionStreams
from equipoise_server.rpc.services.synopsis_stream import Synopses
from equipoise_server.rpc.services.uploads import Uploads
from equipoise_server.rpc.threads import SharedThreads, Threads
from equipoise_server.sessions.service import Sessions
from equipoise_server.transparency.identity_records import authority_is_recorded, recorded_login, recorded_registry
from equipoise_server.transparency.views import LogViews

SERVICES = (
    analyst_pb2.DESCRIPTOR.services_by_name["AnalystService"],
    operator_pb2.DESCRIPTOR.services_by_name["OperatorService"],
    auditor_pb2.DESCRIPTOR.services_by_name["AuditorService"],
)


def make_server(
    config: Config,
    authority: Callable[[], Authority],
    log_keys: Callable[[], str],
    rounds: RoundServices,
    sessions: Sessions,
    stopping: asyncio.Event,
    threads: Threads,
    authenticating: SharedThreads,
    metrics: Metrics,
) -> tuple[aio.Server, Admission]:
    """Build a server that does not listen yet, and what admits its callers.

    Args:
        config: The configuration.
        authority: Returns the authority, which issues the certificates of analysts.
        log_keys: Returns the log's verifier keys, one on each line.
        rounds: The services of rounds and datasets.
        sessions: The sessions.
        stopping: Is set when the server is told to stop.
        threads: The threads that answer calls.
        authenticating: The threads that look callers up.
        metrics: Counts the calls.
    """
    store, clock = rounds.operations.store, rounds.operations.clock
    admission = Admission(
        recorded_registry(rounds.identity_operations),
        authority,
        authority_is_recorded,
        recorded_login,
        config.certificate_days,
        config.login_minutes,
        config.logins_per_day,
    )
    registry = admission.registry
    rates = call_rates(config)
    guards = (
        hide_errors,
        metrics.guard(),
        authentication(
            registry,
            config.deployment,
            clock,
            authenticating,
            Refusals(config.refusals_per_second, config.burst_seconds),
            rates,
        ),
        # Limits come before the role check: a call that is refused for its role costs as much as any other call.
        call_limit(call_limits(config), rates),
        check_role,
    )
    server = aio.server(interceptors=[GuardInterceptor(guard) for guard in guards], options=options(config))
    uploads = Uploads(config.workload_limit_bytes, config.upload_total_bytes, registry.count, threads.reading)

    session_streams = SessionStreams(sessions, threads, stopping, session_stream_limits(config))
    analyst, operator, auditor = SERVICES
    services = {
        analyst: AnalystMethods(
            rounds.own_world,
            rounds.grant_requests,
            rounds.datasets,
            rounds.submissions,
            rounds.analyst_views,
            session_streams,
            Synopses(rounds.analyst_views, store),
            uploads,
            threads,
            stopping,
            admission,
        ),
        operator: OperatorMethods(
            rounds,
            sessions,
            admission,
            config.login_issuer,
            log_keys,
            threads,
            stopping,
        ),
        auditor: AuditorMethods(rounds.views, rounds.budgets, rounds.seeds, LogViews(store)),
    }
    server.add_generic_rpc_handlers(tuple(bind(services, Serving(threads, config.stall_seconds))))
    return server, admission
