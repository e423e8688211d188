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
        description="Where to listen, HOST:PORT. Loopback unless changed; port 0 takes any free port.",
    )
    store: str = Field(
        default="sqlite:///equipoise.db",
        description="The store's URL, sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE: rounds, "
        "workloads, results, budgets. Private tables never enter it.",
    )
    data_directory: str = Field(
        default="data", description="Where the private tables lie. Only files below it can be registered."
    )
    release_grid_seconds: int = Field(
        default=60,
        ge=1,
        le=86_400,
        description="Results open at multiples of this many seconds, so that a run's length stays unseen.",
    )
    retention_days: int = Field(
        default=0,
        ge=0,
        le=36_500,
        description="For how many days after their release results can be read again; 0 keeps them for ever.",
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
        default=4 * 2**20, ge=2**16, le=2**28, description="The largest single message that is received."
    )
    workload_limit_bytes: int = Field(
        default=64 * 2**20, ge=2**10, le=2**31 - 1, description="The largest workload, over all its messages."
    )
    metadata_limit_bytes: int = Field(
        default=16 * 2**10, ge=2**12, le=2**20, description="The largest metadata of one call."
    )
    upload_total_bytes: int = Field(
        default=4 * 2**30,
        ge=2**20,
        le=2**50,
        description="How many bytes of workloads are received or checked at once. Every registered identity has an "
        "equal part of it, whether it uses it or not, so that nobody's uploads refuse another's.",
    )
    calls_per_caller: int = Field(
        default=32, ge=2, le=10_000, description="How many calls one caller may have open at once."
    )
    uploads_per_caller: int = Field(
        default=2, ge=1, le=1_000, description="How many of these may be uploads of workloads."
    )
    connections_per_caller: int = Field(
        default=8, ge=1, le=10_000, description="Over how many connections one caller's open calls may be spread."
    )
    streams_per_connection: int = Field(
        default=100, ge=2, le=10_000, description="How many calls one connection may carry at once."
    )
    connections: int = Field(
        default=1000,
        ge=2,
        le=1_000_000,
        description="How many connections there may be at once; the process needs 200 descriptors more.",
    )
    reads_per_second: int = Field(
        default=100, ge=1, le=1_000_000, description="How often one caller may look something up, on average."
    )
    streams_per_second: int = Field(
        default=20, ge=1, le=1_000_000, description="How often one caller may open a stream or a watch, on average."
    )
    uploads_per_second: int = Field(
        default=10, ge=1, le=1_000_000, description="How often one caller may upload a workload, on average."
    )
    changes_per_second: int = Field(
        default=50,
        ge=1,
        le=1_000_000,
        description="How often one caller may change or plan something otherwise, on average.",
    )
    refusals_per_second: int = Field(
        default=1,
        ge=1,
        le=1_000_000,
        description="Maximum authentication attempts per second with a rejected certificate.",
    )
    asked_per_second: int = Field(
        default=1000,
        ge=1,
        le=1_000_000,
        description="How many statements one caller may ask in sessions, on average; more of them wait to be read.",
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
        description="How many look-ups run at once. Callers take turns, each has a quarter of them at most.",
    )
    working_threads: int = Field(
        default=4,
        ge=2,
        le=256,
        description="How many workloads, plans and changes are checked or made at once, given out likewise.",
    )
    stall_seconds: int = Field(
        default=60,
        ge=1,
        le=3600,
        description="How long a reader may take nothing of its stream, or an upload bring nothing.",
    )
    asked_at_once: int = Field(
        default=64,
        ge=1,
        le=10_000,
        description="How many statements of one stream may wait for their answers; more of them wait to be read.",
    )
    asking_idle_seconds: int = Field(
        default=600,
        ge=1,
        le=86_400,
        description="After how long without a statement the stream of a session ends; clients resume.",
    )
    handshake_seconds: int = Field(
        default=10, ge=1, le=300, description="How long a new connection may take to prove who it is."
    )
    idle_seconds: int = Field(
        default=300, ge=1, le=86_400, description="After how long without a call a connection is closed."
    )
    connection_seconds: int = Field(
        default=3600, ge=60, le=86_400, description="After how long a connection is renewed; clients resume."
    )
    connection_grace_seconds: int = Field(
        default=600, ge=0, le=86_400, description="How long a call may outlive its connection's renewal."
    )
    keepalive_seconds: int = Field(
        default=60,
        ge=1,
        le=3600,
        description="After how long without a word a peer is asked whether it is still there; it has 20 seconds.",
    )
    ping_seconds: int = Field(
        default=10,
        ge=1,
        le=3600,
        description="How often a peer may ask the same; one that asks more often is disconnected.",
    )
    health_listen: str = Field(
        default="",
        description="Where to answer grpc.health.v1, HOST:PORT, without TLS or identity; empty: nowhere.",
    )
    metrics_listen: str = Field(
        default="",
        description="Where to offer metrics to Prometheus, HOST:PORT, without TLS or identity; empty: nowhere.",
    )
    drain_seconds: int = Field(
        default=10, ge=0, le=3600, description="How long calls may go on after the server was told to stop."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",
        description="The least severe messages that are logged, to standard error as JSON lines.",
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
