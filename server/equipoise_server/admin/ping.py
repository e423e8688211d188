"""Asks the running server of a state directory whether it answers: for the health checks of containers."""

from __future__ import annotations

import ssl
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from equipoise.errors import Unavailable
from equipoise_server.admin.state_directory import reached_at
from equipoise_server.config_file import load_config
from equipoise_server.identity.authority import CERTIFICATE_FILE

ANSWER_SECONDS = 5.0
SERVICE = "equipoise.v1.AnalystService"  # which serves as long as the store can be read
_LOCAL = ("127.0.0.1",)


def ping(state: Path) -> str:
    """Return the address at which the server of a state directory has answered.

    The health service is asked, which says whether the store can be read, too. Without `health_listen` the server
    must answer at its address with a certificate of its own authority.

    Raises:
        InvalidArgument: the configuration cannot be read.
        Unavailable: no server answers within five seconds, or it says that it does not serve.
    """
    config = load_config(state)
    try:
        if config.health_listen:
            address = reached_at(config.health_listen, _LOCAL)
            _ask_health(address)
        else:
            address = reached_at(config.listen, _LOCAL)
            host, _, port = address.rpartition(":")
            authority = str(state / "ca" / CERTIFICATE_FILE)
            ssl.get_server_certificate((host.strip("[]"), int(port)), ca_certs=authority, timeout=ANSWER_SECONDS)
    except (OSError, grpc.RpcError):
        raise Unavailable(f"no server answers at {address}") from None
    return address


def _ask_health(address: str) -> None:
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        asked = health_pb2.HealthCheckRequest(service=SERVICE)
        told = health_pb2_grpc.HealthStub(channel).Check(asked, timeout=ANSWER_SECONDS)
    if told.status != health_pb2.HealthCheckResponse.SERVING:
        raise Unavailable(f"the server says at {address} that it does not serve now")
