"""Binds servers to their addresses."""

from __future__ import annotations

import grpc
from grpc import aio

from equipoise.errors import InvalidArgument


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
