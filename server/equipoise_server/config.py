"""The configuration: `equipoise.toml` in the state directory, with every field documented there.

The fields below are the documentation: `config_file.render` writes their descriptions into the file as comments.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from equipoise.clients.provider import check_address
from equipoise.errors import InvalidArgument
from equipoise_server.call_limits import CallLimits

SQLITE = "sqlite:///"


class Deployment(BaseModel):
    """What a deployment is, where its data are, and for how long it keeps what."""

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
        "(equipoise-server clock confirm), or for how long results or seeds are kept if that is shorter; "
        "0 believes it after any time.",
    )
    certificate_days: int = Field(
        default=397, ge=1, le=3650, description="For how many days an analyst's certificate is valid."
    )
    login_listen: str = Field(
        default="",
        description="The address at which people log in with the identity provider, HOST:PORT, with TLS by the "
        "server's certificate alone. Empty: none.",
    )
    login_issuer: str = Field(
        default="",
        description="The identifier of the OpenID Connect provider whose ID tokens are believed, such as "
        "https://login.example.com: exactly as the provider writes it.",
    )
    login_client: str = Field(
        default="", description="The client identifier that this deployment has at the provider, a public client."
    )
    login_minutes: int = Field(
        default=600,
        ge=1,
        le=10_080,
        description="For how many minutes a certificate that was had by logging in is valid.",
    )
    logins_per_day: int = Field(
        default=100,
        ge=1,
        le=100_000,
        description="How many certificates one account may have by logging in within 24 hours.",
    )
    login_connections: int = Field(
        default=200,
        ge=2,
        le=100_000,
        description="The largest number of connections at once at login_listen, of which one network address may "
        "have 20.",
    )

    @field_validator("login_issuer")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if value:
            try:
                check_address(value, "login_issuer")
            except InvalidArgument as error:
                raise ValueError(error.problem) from None
        return value

    @model_validator(mode="after")
    def _logins_are_whole(self) -> Self:
        if self.login_listen and not (self.login_issuer and self.login_client):
            raise ValueError("login_listen needs login_issuer and login_client")
        return self


class Config(CallLimits, Deployment):
    """What a server is told. Unknown keys are refused, so that a typing error does not go unseen."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, validate_default=True)

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

    @field_validator("listen", "login_listen", "health_listen", "metrics_listen")
    @classmethod
    def _listens_somewhere(cls, value: str, info: ValidationInfo) -> str:
        if not value and info.field_name != "listen":
            return value
        host, _, port = value.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise ValueError("must be HOST:PORT with a port from 0 to 65535")
        return value

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
