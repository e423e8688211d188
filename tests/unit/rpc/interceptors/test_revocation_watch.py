"""Calls end with the certificates they were made with, wherever they wait."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from grpc import aio
from harness.waiting import PATIENCE

from equipoise.errors import NotAuthenticated, Unavailable
from equipoise.model.identities import Role
from equipoise_server.identity.authority import Authority, new_key
from equipoise_server.identity.credential import credential_of
from equipoise_server.identity.registry import Registry
from equipoise_server.rpc.interceptors import revocation_watch
from equipoise_server.rpc.interceptors.error_translation import hide_errors
from equipoise_server.rpc.interceptors.interceptor import Call, Context, GuardInterceptor
from equipoise_server.rpc.interceptors.revocation_watch import OpenCalls
from equipoise_server.storage.idempotency import Request, make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.store import open_store

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AUTHORITY = Authority.create("here", NOW)
RECHECK_SECONDS = 0.02


def test_a_revocation_is_looked_for_often_enough_to_take_effect_within_a_minute() -> None:
    assert revocation_watch.RECHECK_SECONDS + revocation_watch.IN_DOUBT_SECONDS <= 30


def fresh() -> Request:
    """A request that was never made before."""
    return make_request("o", secrets.token_hex(8), "add_identity")


@dataclass
class Place:
    """A registry with alice and bob in it, and a clock that can be set."""

    registry: Registry
    alice: x509.Certificate
    bob: x509.Certificate
    now: datetime = NOW

    def open_calls(self) -> OpenCalls:
        return OpenCalls(self.registry, lambda: self.now, RECHECK_SECONDS)

    def revoke_alice(self) -> None:
        self.registry.revoke("alice", {Role.ANALYST}, make_request("o", "revoke", "revoke_identity", "alice"))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    store = open_store(f"sqlite:///{tmp_path / 'test.db'}")
    registry = Registry(Operations(store, lambda: NOW, lambda: None), lambda *_: None)
    alice, bob = (
        AUTHORITY.issue_identity(name, new_key().public_key(), NOW, days)
        for name, days in (("alice", 10), ("bob", 20))
    )
    registry.add("alice", Role.ANALYST, credential_of(alice), fresh())
    registry.add("bob", Role.ANALYST, credential_of(bob), fresh())
    yield Place(registry, alice, bob)
    store.close()


async def waiting(calls: OpenCalls, certificate: x509.Certificate) -> None:
    """A call that would last for ever."""
    async with calls.while_in_force(credential_of(certificate)):
        await asyncio.Event().wait()


async def drained(call: Any) -> None:
    """Reads what is left of a stream."""
    async for _ in call:
        pass


async def test_a_revocation_ends_the_calls_of_one_and_of_nobody_else(place: Place) -> None:
    calls = place.open_calls()
    alices = [asyncio.create_task(waiting(calls, place.alice)) for _ in range(3)]
    bobs = asyncio.create_task(waiting(calls, place.bob))
    await asyncio.sleep(5 * RECHECK_SECONDS)
    assert not any(task.done() for task in (*alices, bobs))
    await asyncio.to_thread(place.revoke_alice)
    for task in alices:
        with pytest.raises(NotAuthenticated, match="no longer, in force"):
            await asyncio.wait_for(task, PATIENCE)
    assert not bobs.done()
    bobs.cancel()
    with pytest.raises(asyncio.CancelledError):
        await bobs


async def test_a_call_outlasts_its_certificate_by_moments_only(place: Place) -> None:
    calls = place.open_calls()
    alices, bobs = (asyncio.create_task(waiting(calls, each)) for each in (place.alice, place.bob))
    await asyncio.sleep(5 * RECHECK_SECONDS)
    place.now += timedelta(days=10, seconds=1)
    with pytest.raises(NotAuthenticated):
        await asyncio.wait_for(alices, PATIENCE)
    assert not bobs.done()
    bobs.cancel()


@pytest.mark.slow
async def test_where_it_cannot_be_known_who_was_revoked_calls_end(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = place.open_calls()
    alices = asyncio.create_task(waiting(calls, place.alice))
    with place.registry.operations.store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE certificates RENAME TO away")
    with monkeypatch.context() as patched:
        patched.setattr(revocation_watch, "IN_DOUBT_SECONDS", 0.2)
        with pytest.raises(Unavailable, match="cannot find out"):
            await asyncio.wait_for(alices, PATIENCE)
    with place.registry.operations.store.write() as connection:
        connection.exec_driver_sql("ALTER TABLE away RENAME TO certificates")
    # Who asks again, once it can be known, is served, and watched again.
    again = asyncio.create_task(waiting(calls, place.alice))
    await asyncio.sleep(5 * RECHECK_SECONDS)
    assert not again.done()
    await asyncio.to_thread(place.revoke_alice)
    with pytest.raises(NotAuthenticated):
        await asyncio.wait_for(again, PATIENCE)


async def test_a_call_s_own_time_limits_stay_its_own(place: Place) -> None:
    with pytest.raises(TimeoutError):
        async with place.open_calls().while_in_force(credential_of(place.alice)):
            await asyncio.wait_for(asyncio.Event().wait(), 0.01)


async def test_calls_that_have_ended_leave_nothing_behind(place: Place) -> None:
    calls = place.open_calls()
    for _ in range(10):
        async with calls.while_in_force(credential_of(place.alice)):
            pass
    end = asyncio.get_running_loop().time() + PATIENCE
    while len(asyncio.all_tasks()) > 1:
        assert asyncio.get_running_loop().time() < end
        await asyncio.sleep(RECHECK_SECONDS)


async def test_a_stream_whose_reader_does_not_read_ends_too(place: Place) -> None:
    """Over a real connection, with a reader that stops after the first message, and reads on much later."""
    calls = place.open_calls()
    ended = asyncio.Event()

    @asynccontextmanager
    async def as_alice(_: Call) -> AsyncIterator[None]:
        try:
            async with calls.while_in_force(credential_of(place.alice)):
                yield
        finally:
            ended.set()

    async def stream(_: bytes, context: Context) -> None:
        while True:
            await context.write(bytes(2**16))

    make: Any = grpc
    handler = make.method_handlers_generic_handler("x.X", {"Y": make.unary_stream_rpc_method_handler(stream)})
    server = aio.server(interceptors=[GuardInterceptor(guard) for guard in (hide_errors, as_alice)])
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            method: Any = channel.unary_stream("/x.X/Y")
            call = method(b"")
            assert len(await anext(aiter(call))) == 2**16
            await asyncio.sleep(5 * RECHECK_SECONDS)
            assert not ended.is_set()
            await asyncio.to_thread(place.revoke_alice)
            await asyncio.wait_for(ended.wait(), PATIENCE)
            # What was on its way arrives, and then the reason.
            with pytest.raises(aio.AioRpcError) as refused:
                await asyncio.wait_for(drained(call), PATIENCE)
    finally:
        await server.stop(None)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert ("equipoise-reason", "IDENTITY") in tuple(refused.value.trailing_metadata() or ())
