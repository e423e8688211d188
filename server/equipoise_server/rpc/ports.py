"""Binds servers to their addresses, and makes room for their connections."""

from __future__ import annotations

import resource

import grpc
import structlog
from grpc import aio

from equipoise.errors import InvalidArgument
from equipoise_server.config import Config
from equipoise_server.rpc.door_connections import DESCRIPTORS

OTHER_DESCRIPTORS = 200  # of the store, workers, tables and logs
_log = structlog.get_logger("equipoise.server")


def allow_descriptors(config: Config) -> None:
    """Raise this process's limit of open files to what the connections of both ports may need.

    Where the system does not allow as many, the log says so: then connections are refused before their limits.
    """
    at_door = config.login_connections if config.login_listen else 0
    needed = config.connections + DESCRIPTORS * at_door + OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < needed:
        _log.warning("few_descriptors", needed=needed, allowed=allowed)


def bind_port(server: aio.Server, listen: str, field: str, credentials: grpc.ServerCredentials) -> int:
    """Bind a server to an address, and return the port.

    Args:
        server: The server.
        listen: The address, HOST:PORT.
        field: What an error names: the file and the field that hold the address.
        credentials: Of TLS.

    Raises:
        InvalidArgument: The address cannot be used.
    """
    try:
        port = server.add_secure_port(listen, credentials)
    except RuntimeError:
        port = 0
    if not port:
        raise InvalidArgument(field, f"cannot listen on {listen}; is another server running there?")
    return port
