"""Strangers' connections are counted for each network, and no network keeps another out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from harness.waiting import PATIENCE

from equipoise.errors import InvalidArgument
from equipoise_server.rpc.door_connections import PER_ADDRESS, door_connections, listening, network_of

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Arrive = Callable[[str], Awaitable[Ends]]


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::7", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_one_customer_of_ipv6_is_one_address(address: str, network: str) -> None:
    assert network_of(address) == network


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(100):
        writer.write(data)
    writer.close()


@asynccontextmanager
async def door(most: int) -> AsyncIterator[Arrive]:
    """A door behind which everything is said again; yields how somebody comes to it from an address."""
    come: list[asyncio.StreamWriter] = []
    async with door_connections(most) as connections:
        behind = await asyncio.start_unix_server(echo, connections.inner)
        async with listening(connections, "127.0.0.1:0", "login_listen") as port:

            async def arrive(address: str) -> Ends:
                ends = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
                come.append(ends[1])
                return ends

            yield arrive
        for writer in come:
            writer.transport.abort()
        behind.close()


async def served(ends: Ends) -> bool:
    """Whether a connection is still passed on."""
    reader, writer = ends
    try:
        writer.write(b"hello")
        return await asyncio.wait_for(reader.read(5), PATIENCE) == b"hello"
    except ConnectionError:
        return False


async def test_whoever_holds_few_is_let_in_and_whoever_holds_the_most_makes_room() -> None:
    async with door(4) as arrive:
        held = [await arrive("127.0.0.2") for _ in range(4)]
        assert [await served(each) for each in held] == [True] * 4
        others = [await arrive(address) for address in ("127.0.0.3", "127.0.0.4")]
        assert [await served(each) for each in others] == [True, True]
        # The oldest ones are gone. The rest, and those who came, stay.
        assert [await served(each) for each in held] == [False, False, True, True]
        assert [await served(each) for each in others] == [True, True]


async def test_an_address_has_so_many_and_makes_room_for_itself() -> None:
    async with door(10 * PER_ADDRESS) as arrive:
        other = await arrive("127.0.0.3")
        held = [await arrive("127.0.0.2") for _ in range(PER_ADDRESS)]
        assert all([await served(each) for each in held])
        newest = await arrive("127.0.0.2")
        assert await served(newest)
        assert [await served(each) for each in held] == [False] + [True] * (PER_ADDRESS - 1)
        assert await served(other)
        # What one end has closed makes room, too, and all that was said before arrives.
        reader, writer = newest
        writer.write(b"goodbye")
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(), PATIENCE) == b"goodbye"
        assert await served(await arrive("127.0.0.2"))
        assert all([await served(each) for each in held[1:]])


async def test_an_address_that_is_taken_is_refused_naming_the_setting() -> None:
    async with door_connections(2) as connections, listening(connections, "127.0.0.1:0", "x") as port:
        with pytest.raises(InvalidArgument, match=rf"^login_listen: cannot listen on 127.0.0.1:{port}; is another"):
            async with listening(connections, f"127.0.0.1:{port}", "login_listen"):
                pass
