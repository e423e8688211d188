"""Limits on what callers send and hold, so that none keeps the others waiting: fields of the configuration."""

from __future__ import annotations

from pydantic import BaseModel, Field


class CallLimits(BaseModel):
    """The limits of connections, calls, uploads and streams, each with its default and its range."""

    message_limit_bytes: int = Field(
        default=4 * 2**20, ge=2**16, le=2**28, description="The largest single message that the server accepts."
    )
    workload_limit_bytes: int = Field(
        default=64 * 2**20,
        ge=2**10,
        le=2**31 - 1,
        description="The largest workload that the server accepts, all its messages together.",
    )
    metadata_limit_bytes: int = Field(
        default=16 * 2**10,
        ge=2**12,
        le=2**20,
        description="The largest metadata of one call that the server accepts.",
    )
    upload_total_bytes: int = Field(
        default=4 * 2**30,
        ge=2**20,
        le=2**50,
        description="Memory for workloads that are being received or checked. Every registered identity "
        "has an equal part of it, used or not, so that nobody's uploads can refuse another's.",
    )
    calls_per_caller: int = Field(
        default=32,
        ge=2,
        le=10_000,
        description="The largest number of calls that one caller may have open at once.",
    )
    uploads_per_caller: int = Field(
        default=2, ge=1, le=1_000, description="The largest number of those calls that may be uploads of workloads."
    )
    connections_per_caller: int = Field(
        default=8,
        ge=1,
        le=10_000,
        description="The largest number of connections that one caller's open calls may use.",
    )
    streams_per_connection: int = Field(
        default=100, ge=2, le=10_000, description="The largest number of calls on one connection at once."
    )
    connections: int = Field(
        default=1000,
        ge=2,
        le=1_000_000,
        description="The largest number of connections at once. The process needs 200 file descriptors "
        "more than this, and three for each of login_connections.",
    )
    reads_per_second: int = Field(
        default=100,
        ge=1,
        le=1_000_000,
        description="The number of look-ups per second that one caller may make, on average.",
    )
    streams_per_second: int = Field(
        default=20,
        ge=1,
        le=1_000_000,
        description="The number of streams and watches per second that one caller may open, on average.",
    )
    uploads_per_second: int = Field(
        default=10,
        ge=1,
        le=1_000_000,
        description="The number of workloads per second that one caller may upload, on average.",
    )
    changes_per_second: int = Field(
        default=50,
        ge=1,
        le=1_000_000,
        description="The number of plans and other changes per second that one caller may request, on average.",
    )
    refusals_per_second: int = Field(
        default=1,
        ge=1,
        le=1_000_000,
        description="The number of authentication attempts per second with one rejected certificate, on average.",
    )
    asked_per_second: int = Field(
        default=1000,
        ge=1,
        le=1_000_000,
        description="The number of statements per second that one caller may ask in sessions, on average; "
        "the server reads further ones later.",
    )
    burst_seconds: int = Field(
        default=10,
        ge=1,
        le=3600,
        description="Burst size: how many seconds' worth of calls a caller may save up.",
    )
    reading_threads: int = Field(
        default=8,
        ge=2,
        le=256,
        description="The number of threads for look-ups. Callers take turns, and one caller has at most a "
        "quarter of the threads.",
    )
    working_threads: int = Field(
        default=4,
        ge=2,
        le=256,
        description="The number of threads that check workloads, plan and make changes. Callers share "
        "them in the same way.",
    )
    stall_seconds: int = Field(
        default=60,
        ge=1,
        le=3600,
        description="A stream ends when its reader has taken nothing for this long, and an upload when "
        "nothing has arrived for this long.",
    )
    worker_idle_seconds: int = Field(
        default=120,
        ge=10,
        le=86_400,
        description="A worker that is waited for and has used no processor time for this long is killed, and "
        "its run is begun again.",
    )
    asked_at_once: int = Field(
        default=64,
        ge=1,
        le=10_000,
        description="The largest number of statements of one stream that wait for their answers; the "
        "server reads further ones later.",
    )
    asking_idle_seconds: int = Field(
        default=600,
        ge=1,
        le=86_400,
        description="A session's stream ends after this long without a statement; clients resume.",
    )
    handshake_seconds: int = Field(
        default=10, ge=1, le=300, description="The time limit for the TLS handshake of a new connection."
    )
    idle_seconds: int = Field(
        default=300, ge=1, le=86_400, description="A connection is closed after this long without a call."
    )
    connection_seconds: int = Field(
        default=3600, ge=60, le=86_400, description="A connection is renewed after this long; clients resume."
    )
    connection_grace_seconds: int = Field(
        default=600,
        ge=0,
        le=86_400,
        description="For this long calls may go on after their connection was renewed.",
    )
    keepalive_seconds: int = Field(
        default=60,
        ge=1,
        le=3600,
        description="After this long without any traffic the server pings its peer, which has 20 seconds "
        "to answer.",
    )
    ping_seconds: int = Field(
        default=10,
        ge=1,
        le=3600,
        description="The shortest time between two pings of a peer; one that pings more often is disconnected.",
    )
