"""What one caller may do is limited, and nobody else's limits change by it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import cast

import pytest
from structlog.testing import capture_logs

from equipoise.errors import TooFast
from equipoise.model.identities import Caller, Role
from equipoise_server.identity.policy import MethodPolicy, Ownership, Rate
from equipoise_server.rpc.interceptors import authentication
from equipoise_server.rpc.interceptors.call_limits import TOO_MANY, TOO_SPREAD, CallLimits, call_limit
from equipoise_server.rpc.interceptors.interceptor import Call, Context, Guard
from equipoise_server.rpc.interceptors.token_bucket import TOO_OFTEN

POLICY = {
    f"/x/{rate}": MethodPolicy(frozenset({Role.ANALYST}), Ownership.SELF, rate) for rate in (Rate.READ, Rate.UPLOAD)
}
SLOW = {Rate.READ: 2.0, Rate.UPLOAD: 0.5}


@dataclass
class FakeContext:
    """Says over which connection the call came."""

    connection: str

    def peer(self) -> str:
        return self.connection


@dataclass
class Clock:
    """A clock that is set by hand."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def limited(
    clock: Clock,
    calls: int = 100,
    uploads: int = 100,
    connections: int = 100,
    rates: Mapping[Rate, float] = dict.fromkeys(Rate, 1000.0),
) -> Guard:
    return call_limit(CallLimits(calls, uploads, connections, rates, burst_seconds=4), POLICY, clock)


async def enter(
    stack: AsyncExitStack, limit: Guard, name: str, rate: Rate = Rate.READ, connection: str = "one"
) -> None:
    # What the authentication guard does for a call.
    authentication._CALLER.set(Caller(name, Role.ANALYST))
    call = Call(f"/x/{rate}", cast(Context, FakeContext(connection)))
    await stack.enter_async_context(limit(call))


async def answered(limit: Guard, name: str, rate: Rate = Rate.READ) -> None:
    async with AsyncExitStack() as stack:
        await enter(stack, limit, name, rate)


async def test_open_calls_are_counted_for_each_caller_alone() -> None:
    limit = limited(Clock(), calls=2)
    async with AsyncExitStack() as stack:
        await enter(stack, limit, "alice")
        await enter(stack, limit, "alice")
        with pytest.raises(TooFast, match=TOO_MANY):
            await enter(stack, limit, "alice")
        await enter(stack, limit, "bob")
        await enter(stack, limit, "bob")


async def test_uploads_have_a_limit_of_their_own_and_places_are_given_back() -> None:
    limit = limited(Clock(), uploads=1)
    for _ in range(3):
        async with AsyncExitStack() as stack:
            await enter(stack, limit, "alice", Rate.UPLOAD)
            with pytest.raises(TooFast, match=TOO_MANY):
                await enter(stack, limit, "alice", Rate.UPLOAD)
            await enter(stack, limit, "alice")


async def test_a_failed_call_gives_its_place_back() -> None:
    limit = limited(Clock(), calls=1, uploads=1)

    async def failing() -> None:
        async with AsyncExitStack() as stack:
            await enter(stack, limit, "alice", Rate.UPLOAD)
            raise KeyError

    for _ in range(3):
        with pytest.raises(KeyError):
            await failing()


async def test_open_calls_come_over_few_connections() -> None:
    limit = limited(Clock(), connections=2)
    async with AsyncExitStack() as stack:
        for connection in ("one", "two", "one"):
            await enter(stack, limit, "alice", connection=connection)
        with pytest.raises(TooFast, match=TOO_SPREAD):
            await enter(stack, limit, "alice", connection="three")
        await enter(stack, limit, "bob", connection="three")
    async with AsyncExitStack() as stack:
        await enter(stack, limit, "alice", connection="three")


async def test_calls_in_a_row_are_limited_by_kind_and_caller_and_said_when_to_try_again() -> None:
    clock = Clock()
    limit = limited(clock, rates=SLOW)
    for _ in range(8):
        await answered(limit, "alice")
    with pytest.raises(TooFast, match=TOO_OFTEN) as refused:
        await answered(limit, "alice")
    assert refused.value.retry_seconds == 0.5
    await answered(limit, "alice", Rate.UPLOAD)
    await answered(limit, "bob")
    # Refusals take nothing, so waiting as told is enough.
    clock.now += 0.5
    await answered(limit, "alice")
    with pytest.raises(TooFast):
        await answered(limit, "alice")
    clock.now += 1000
    for _ in range(8):
        await answered(limit, "alice")
    with pytest.raises(TooFast):
        await answered(limit, "alice")


async def test_refusals_are_logged_once_a_minute() -> None:
    clock = Clock()
    limit = limited(clock, rates=dict.fromkeys(Rate, 0.001))
    await answered(limit, "alice")
    with capture_logs() as logged:
        for _ in range(50):
            clock.now += 2
            with pytest.raises(TooFast):
                await answered(limit, "alice")
    assert [entry["caller"] for entry in logged] == ["alice"] * 2
