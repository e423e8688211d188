"""The configuration: `equipoise.toml` in the state directory, with every field documented there.

The fields below are the documentation: `config_file.render` writes their descriptions into the file as comments.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

SQLITE = "sqlite:///"


class Config(BaseSettings):
    """What a server is told. Unknown keys are refused, so that a typing error does not go unseen."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = Field(default=1, description="The version of this file's format.")
    deployment: str = Field(
        description="The deployment's identifier, part of every certificate it issues. Never change it."
    )
    listen: str = Field(
        default="127.0.0.1:7443",
        description="The address to listen on, HOST:PORT. Port 0 takes any free port.",
    )
    store: str = Field(
        default="sqlite:///equipoise.db",
        description="The store's URL, sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE. It holds "
        "rounds, workloads, results and budgets, and never a private table.",
    )
    data_directory: str = Field(
        default="data", description="The directory of the private tables. Only files below it can be registered."
    )
    release_grid_seconds: int = Field(
        default=60,
        ge=1,
        le=86_400,
        description="Results become readable only at multiples of this many seconds, so that nobody can "
        "tell how long a run took.",
    )
    retention_days: int = Field(
        default=0,
        ge=0,
        le=36_500,
        description="For this many days after their release results can be read; 0 keeps them for ever.",
    )
    audit_window_days: int = Field(
        default=365,
        ge=0,
        le=36_500,
        description="For how many days after a round has ended auditors can read its seed; 0 keeps seeds for ever.",
    )
    absence_days: int = Field(
        default=7,
        ge=0,
        le=36_500,
        description="For how many days no server may have run before its clock must be confirmed "
        "(equipoise-server clock confirm); 0 believes it after any time.",
    )
    certificate_days: int = Field(
        default=397, ge=1, le=3650, description="For how many days an analyst's certificate is valid."
    )
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
        "more than this.",
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
    health_listen: str = Field(
        default="",
        description="The address that answers grpc.health.v1, HOST:PORT, without TLS or identity. Empty: none.",
    )
    metrics_listen: str = Field(
        default="",
        description="The address that offers metrics to Prometheus, HOST:PORT, without TLS or identity. "
        "Empty: none.",
    )
    drain_seconds: int = Field(
        default=10,
        ge=0,
        le=3600,
        description="For this long open calls may go on after the server was told to stop.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",
        description="The lowest severity that is logged. Messages go to standard error as JSON lines.",
    )

    @field_validator("listen", "health_listen", "metrics_listen")
    @classmethod
    def _listens_somewhere(cls, value: str, info: ValidationInfo) -> str:
        if not value and info.field_name != "listen":
            return value
        host, _, port = value.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise ValueError("must be HOST:PORT with a port from 0 to 65535")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The file alone: what a server does must be readable in one place, not depend on an environment."""
        return (init_settings, TomlConfigSettingsSource(settings_cls))

    def store_url(self, state: Path) -> str:
        """The store's URL, with a relative SQLite path resolved against the state directory."""
        database = self.database_file(state)
        return self.store if database is None else f"{SQLITE}{database}"

    def database_file(self, state: Path) -> Path | None:
        """The file of an SQLite store; None for a store that is no file."""
        if not self.store.startswith(SQLITE):
            return None
        return (state / self.store.removeprefix(SQLITE)).absolute()

    def data_path(self, state: Path) -> Path:
        """The directory of the private tables."""
        return (state / self.data_directory).absolute()
