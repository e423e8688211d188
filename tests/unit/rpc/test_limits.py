"""One caller's open calls are limited, and nobody else's."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import cast

import pytest

from equipoise.errors import TooFast
from equipoise_server.identity.names import Caller, Role
from equipoise_server.rpc import authentication
from equipoise_server.rpc.guards import Call, Context, Guard
from equipoise_server.rpc.limits import call_limit


def call(uploads: bool = False) -> Call:
    return Call("/x/Y", uploads, cast(Context, None))


async def enter(stack: AsyncExitStack, limit: Guard, name: str, uploads: bool = False) -> None:
    # What the authentication guard does for a call.
    authentication._CALLER.set(Caller(name, Role.ANALYST))
    await stack.enter_async_context(limit(call(uploads)))


async def test_calls_are_counted_for_each_caller_alone() -> None:
    limit = call_limit(calls_per_caller=2, uploads_per_caller=1)
    async with AsyncExitStack() as stack:
        await enter(stack, limit, "alice")
        await enter(stack, limit, "alice")
        with pytest.raises(TooFast):
            await enter(stack, limit, "alice")
        await enter(stack, limit, "bob")
        await enter(stack, limit, "bob")


async def test_uploads_have_a_limit_of_their_own_and_places_are_given_back() -> None:
    limit = call_limit(calls_per_caller=5, uploads_per_caller=1)
    for _ in range(3):
        async with AsyncExitStack() as stack:
            await enter(stack, limit, "alice", uploads=True)
            with pytest.raises(TooFast):
                await enter(stack, limit, "alice", uploads=True)
            await enter(stack, limit, "alice")


async def test_a_failed_call_gives_its_place_back() -> None:
    limit = call_limit(calls_per_caller=1, uploads_per_caller=1)
    authentication._CALLER.set(Caller("alice", Role.ANALYST))
    for _ in range(3):
        with pytest.raises(KeyError):
            async with limit(call(uploads=True)):
                raise KeyError
