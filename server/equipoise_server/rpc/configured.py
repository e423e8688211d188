"""Converts the configuration into gRPC's settings and the limits of calls and streams."""

from __future__ import annotations

from equipoise_server.config import Config
from equipoise_server.identity.policy import Rate
from equipoise_server.rpc.interceptors.call_limits import OpenCallLimits
from equipoise_server.rpc.interceptors.call_rates import CallRates
from equipoise_server.rpc.services.session_stream import SessionStreamLimits

# Calls whose connection has ended stay in the line until they are looked at, so few connections may bring many.
MIN_BACKLOG, MAX_BACKLOG = 100_000, 2**31 - 1
KEEPALIVE_ANSWER_SECONDS = 20  # how long a peer has to answer a keepalive ping


def call_limits(config: Config) -> OpenCallLimits:
    """Return the limits of each caller's open calls."""
    return OpenCallLimits(
        calls=config.calls_per_caller,
        uploads=config.uploads_per_caller,
        connections=config.connections_per_caller,
    )


def call_rates(config: Config) -> CallRates:
    """Return the rates of each caller, none of which has been used yet."""
    rates = {
        Rate.READ: config.reads_per_second,
        Rate.STREAM: config.streams_per_second,
        Rate.UPLOAD: config.uploads_per_second,
        Rate.CHANGE: config.changes_per_second,
    }
    return CallRates(rates, config.burst_seconds)


def session_stream_limits(config: Config) -> SessionStreamLimits:
    """Return the limits of the streams of sessions."""
    return SessionStreamLimits(
        at_once=config.asked_at_once,
        per_second=config.asked_per_second,
        burst=config.asked_per_second * config.burst_seconds,
        idle_seconds=config.asking_idle_seconds,
    )


def options(config: Config) -> list[tuple[str, int]]:
    """Return gRPC's settings where the default is unsafe for a server that strangers can reach."""
    waiting = min(max(config.connections * config.streams_per_connection, MIN_BACKLOG), MAX_BACKLOG)
    return [
        # With port sharing, a second server would silently take half of the connections.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", config.message_limit_bytes),
        ("grpc.max_concurrent_streams", config.streams_per_connection),
        # All callers' calls wait in one line until we look at them. From a line of more than a thousand gRPC would
        # drop calls at random, whosever they are, and any call after 30 seconds.
        ("grpc.server.max_pending_requests", waiting),
        ("grpc.server.max_pending_requests_hard_limit", waiting),
        ("grpc.server_max_unrequested_time_in_server", config.connection_seconds),
        ("grpc.max_metadata_size", config.metadata_limit_bytes),
        ("grpc.absolute_max_metadata_size", config.metadata_limit_bytes),
        ("grpc.max_allowed_incoming_connections", config.connections),
        ("grpc.server_handshake_timeout_ms", config.handshake_seconds * 1000),
        ("grpc.max_connection_idle_ms", config.idle_seconds * 1000),
        ("grpc.max_connection_age_ms", config.connection_seconds * 1000),
        ("grpc.max_connection_age_grace_ms", config.connection_grace_seconds * 1000),
        # The server accepts no compressed messages, so a small message never expands to a large one. It sends none
        # either, so the size of a message does not depend on its content.
        ("grpc.compression_enabled_algorithms_bitset", 1),
        # Pings detect peers that vanished. Peers that flood the server with pings are disconnected.
        ("grpc.keepalive_time_ms", config.keepalive_seconds * 1000),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_ANSWER_SECONDS * 1000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", config.ping_seconds * 1000),
        ("grpc.http2.max_ping_strikes", 3),
    ]
