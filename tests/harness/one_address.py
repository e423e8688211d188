"""One address for several servers: sends each connection to the first server that takes it, as a balancer does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

CHUNK = 65_536


@contextmanager
def one_address(ports: Sequence[int]) -> Iterator[int]:
    """A port of loopback behind which servers stand, while the context lasts.

    Args:
        ports: the servers', in the order in which they are tried.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, tuple(ports)), daemon=True).start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, ports: tuple[int, ...]) -> None:
    while True:
        try:
            caller, _ = listener.accept()
        except OSError:
            return
        server = _reached(ports)
        if server is None:
            caller.close()
            continue
        for source, sink in ((caller, server), (server, caller)):
            threading.Thread(target=_carry, args=(source, sink), daemon=True).start()


def _reached(ports: tuple[int, ...]) -> socket.socket | None:
    for port in ports:
        with suppress(OSError):
            return socket.create_connection(("127.0.0.1", port))
    return None


def _carry(source: socket.socket, sink: socket.socket) -> None:
    """What one side sends, for the other; the end of one is the end of both."""
    with suppress(OSError):
        while content := source.recv(CHUNK):
            sink.sendall(content)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
