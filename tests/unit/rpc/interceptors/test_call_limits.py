"""What one caller may do is limited, and nobody else's limits change by it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import cast

import pytest
from structlog.testing import capture_logs

from equipoise.errors import TooFast
from equipoise.model.identities import Caller, Role
from equipoise_server.identity.policy import MethodPolicy, Ownership, Rate
from equipoise_server.rpc.interceptors import authentication
from equipoise_server.rpc.interceptors.call_limits import TOO_MANY, TOO_SPREAD, OpenCallLimits, call_limit
from equipoise_server.rpc.interceptors.call_rates import CallRates
from equipoise_server.rpc.interceptors.interceptor import UNKNOWN, Call, Context, Guard

POLICY = {
    f"/x/{rate}": MethodPolicy(frozenset({Role.ANALYST}), Ownership.SELF, rate) for rate in (Rate.READ, Rate.UPLOAD)
}


@dataclass
class FakeContext:
    """Says over which connection the call came."""

    connection: str

    def peer(self) -> str:
        return self.connection


def limited(calls: int = 100, uploads: int = 100, connections: int = 100) -> Guard:
    rates = CallRates(dict.fromkeys(Rate, 1000.0), 4, POLICY)
    return call_limit(OpenCallLimits(calls, uploads, connections), rates, POLICY)


async def enter(
    stack: AsyncExitStack, limit: Guard, name: str, rate: Rate | None = Rate.READ, connection: str = "one"
) -> None:
    # What the authentication guard does for a call.
    authentication._CALLER.set(Caller(name, Role.ANALYST))
    call = Call(f"/x/{rate}" if rate else UNKNOWN, cast(Context, FakeContext(connection)))
    await stack.enter_async_context(limit(call))


async def test_open_calls_are_counted_for_each_caller_alone() -> None:
    limit = limited(calls=2)
    async with AsyncExitStack() as stack:
        await enter(stack, limit, "alice")
        await enter(stack, limit, "alice")
        with pytest.raises(TooFast, match=TOO_MANY):
            await enter(stack, limit, "alice")
        await enter(stack, limit, "bob")
        await enter(stack, limit, "bob")


async def test_uploads_have_a_limit_of_their_own_and_places_are_given_back() -> None:
    limit = limited(uploads=1)
    for _ in range(3):
        async with AsyncExitStack() as stack:
            await enter(stack, limit, "alice", Rate.UPLOAD)
            with pytest.raises(TooFast, match=TOO_MANY):
                await enter(stack, limit, "alice", Rate.UPLOAD)
            await enter(stack, limit, "alice")


async def test_a_failed_call_gives_its_place_back() -> None:
    limit = limited(calls=1, uploads=1)

    async def failing() -> None:
        async with AsyncExitStack() as stack:
            await enter(stack, limit, "alice", Rate.UPLOAD)
            raise KeyError

    for _ in range(3):
        with pytest.raises(KeyError):
            await failing()


async def test_open_calls_come_over_few_connections() -> None:
    limit = limited(connections=2)
    async with AsyncExitStack() as stack:
        for connection in ("one", "two", "one"):
            await enter(stack, limit, "alice", connection=connection)
        with pytest.raises(TooFast, match=TOO_SPREAD):
            await enter(stack, limit, "alice", connection="three")
        await enter(stack, limit, "bob", connection="three")
    async with AsyncExitStack() as stack:
        await enter(stack, limit, "alice", connection="three")


async def test_calls_of_methods_that_do_not_exist_are_counted_as_well() -> None:
    limit = limited(calls=2)
    async with AsyncExitStack() as stack:
        await enter(stack, limit, "alice", None)
        await enter(stack, limit, "alice", None)
        with pytest.raises(TooFast, match=TOO_MANY):
            await enter(stack, limit, "alice")


async def test_refusals_are_logged() -> None:
    limit = limited(calls=1)
    async with AsyncExitStack() as stack:
        await enter(stack, limit, "alice")
        with capture_logs() as logged:
            for _ in range(50):
                with pytest.raises(TooFast):
                    await enter(stack, limit, "alice")
    assert [(entry["caller"], entry["problem"]) for entry in logged] == [("alice", TOO_MANY)]
