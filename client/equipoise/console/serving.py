"""The console's web server: on this machine's own address alone."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from equipoise.console.access import HOST, Access
from equipoise.console.app import pages_of
from equipoise.console.desk import Desk
from equipoise.errors import InvalidArgument


def serve(profile: Path, port: int, opened: Callable[[str, Desk], None]) -> None:
    """Serves the console until it is interrupted.

    Args:
        profile: the directory of the user's profile.
        port: to listen on; 0: one that is free.
        opened: told the address that opens the console, once, when it can be opened.

    Raises:
        InvalidArgument: the port is taken, or a file of the profile is missing or malformed.
        Unavailable: the server is not reached.
    """
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
        except OSError as error:
            raise InvalidArgument("--port", f"{port} cannot be listened on: {error.strerror}") from None
        listening.listen()
        desk = Desk.of(profile, Access(listening.getsockname()[1]))
        try:
            config = uvicorn.Config(
                pages_of(desk),
                # No log of requests: the first one's address holds the token.
                access_log=False,
                date_header=False,
                lifespan="off",
                log_level="warning",
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=1,
                ws="none",
            )
            opened(desk.access.address, desk)
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            desk.connection.close()
