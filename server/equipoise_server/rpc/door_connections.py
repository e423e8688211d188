"""Takes connections of strangers and passes their bytes on, so that no address keeps the others out.

gRPC has one bound for all connections together. Whoever needs no certificate could use it up alone, so connections
are counted here, for each network address, before gRPC sees them. TLS ends in gRPC: what passes here is encrypted.
Where there are as many connections as there may be, the address that holds the most loses its oldest one, and so
does an address that has as many as one may have. So whoever comes is let in, and who stays makes room.
"""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import IPv6Address, IPv6Network, ip_address
from itertools import count
from pathlib import Path

from equipoise.errors import InvalidArgument

PER_ADDRESS = 20  # connections at once, which many people may share
PREFIX = 64  # bits of an IPv6 address that tell networks apart: one customer has all addresses of at least one
LONGEST_SECONDS = 120  # that a connection stays; gRPC ends it before, but for one that takes nothing
ENDING_SECONDS = 5  # for the second end of a connection, after the first one has closed it
CHUNK = 2**16  # bytes that are passed on at a time
DESCRIPTORS = 3  # of each connection: the stranger's, and both ends of the one to gRPC


@dataclass
class DoorConnections:
    """The connections of strangers at one address, each passed on to gRPC's own socket in a private directory."""

    directory: Path
    most: int
    _open: dict[str, tuple[str, asyncio.Task[None]]] = field(default_factory=dict)  # by path, the oldest first
    _numbers: count[int] = field(default_factory=count)

    @property
    def inner(self) -> str:
        """Where gRPC listens."""
        return str(self.directory / "grpc")

    def address_of(self, peer: str) -> str:
        """Return the network of a connection's stranger. `peer`: as gRPC calls the connection's other end."""
        network, _ = self._open.get(peer.removeprefix("unix:"), ("", None))
        return network

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a new connection on until one of its ends is closed, or it has to make room for another."""
        found = writer.get_extra_info("peername")
        task, path = asyncio.current_task(), str(self.directory / str(next(self._numbers)))
        if found is None or task is None:
            writer.close()
            return
        network = network_of(found[0])
        held = Counter(each for each, _ in self._open.values())
        if held[network] >= PER_ADDRESS:
            self._make_room(network)
        elif len(self._open) >= self.most:
            self._make_room(held.most_common(1)[0][0])
        self._open[path] = (network, task)
        try:
            await self._pass_on(path, reader, writer)
        except asyncio.CancelledError:
            pass  # it made room, or the server stops
        finally:
            self._open.pop(path, None)
            writer.transport.abort()

    async def close(self) -> None:
        """End every connection."""
        tasks = [task for _, task in self._open.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _make_room(self, network: str) -> None:
        path = next(path for path, (each, _) in self._open.items() if each == network)
        _, task = self._open.pop(path)
        task.cancel()

    async def _pass_on(self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # What is suppressed includes `TimeoutError`.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as own:
            own.setblocking(False)
            own.bind(path)  # the name by which gRPC tells connections apart
            await asyncio.get_running_loop().sock_connect(own, self.inner)
            Path(path).unlink()
            inner_reader, inner_writer = await asyncio.open_unix_connection(sock=own)
            ways = [asyncio.create_task(_copied(*way)) for way in ((reader, inner_writer), (inner_reader, writer))]
            try:
                async with asyncio.timeout(LONGEST_SECONDS):
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                    await asyncio.wait(ways, timeout=ENDING_SECONDS)
            finally:
                for way in ways:
                    way.cancel()
                inner_writer.transport.abort()


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()  # after what was written has been sent


def network_of(address: str) -> str:
    """Return what stands for an IP address when callers are counted: itself, or its first 64 bits in IPv6."""
    found = ip_address(address.partition("%")[0])
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Network((found, PREFIX), strict=False))


@asynccontextmanager
async def door_connections(most: int) -> AsyncIterator[DoorConnections]:
    """Yield what takes at most so many connections; all of them have ended with the context."""
    with tempfile.TemporaryDirectory(prefix="equipoise-door-") as directory:
        connections = DoorConnections(Path(directory), most)
        try:
            yield connections
        finally:
            await connections.close()


@asynccontextmanager
async def listening(connections: DoorConnections, listen: str, setting: str) -> AsyncIterator[int]:
    """Take connections at an address while the context is open, and yield the port.

    Args:
        connections: What takes them.
        listen: The address, HOST:PORT.
        setting: What an error names: the file and the field that hold the address.

    Raises:
        InvalidArgument: The address cannot be used.
    """
    host, _, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        if host == "::" and socket.has_dualstack_ipv6():
            sock = socket.create_server((host, int(port)), family=socket.AF_INET6, dualstack_ipv6=True)
            server = await asyncio.start_server(connections.take, sock=sock)
        else:
            server = await asyncio.start_server(connections.take, host, int(port))
    except OSError:
        raise InvalidArgument(setting, f"cannot listen on {listen}; is another server running there?") from None
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
