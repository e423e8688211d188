"""Checks the version of gRPC: some versions work for clients but make servers fail under attack."""

from __future__ import annotations

import grpc

from equipoise.errors import InvalidArgument

FIRST, FAULTY_FROM = (1, 78), (1, 83)


def check_grpc() -> None:
    """Refuse a version of grpcio with which callers could lock others out, or end the server.

    In 1.83, connections that have ended still count against the limit of connections. From 1.84 on, a call whose
    path is not UTF-8 ends the server's main loop, which our code cannot prevent: gRPC reads the path before it asks
    for any handler. 1.85.3 has the second fault and not the first one. No report of either was found upstream.

    Raises:
        InvalidArgument: The version is refused. The message names it, the accepted versions, and the command that
            installs one of them.
    """
    version = tuple(int(part) for part in grpc.__version__.split(".")[:2])
    if not FIRST <= version < FAULTY_FROM:
        first, faulty = (".".join(map(str, each)) for each in (FIRST, FAULTY_FROM))
        problem = f"version {grpc.__version__} is installed; a server needs {first} or later, but below {faulty}"
        raise InvalidArgument("grpcio", f"{problem}; run: pip install 'equipoise[server]'")
