"""Whose certificate is in force, at every moment."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

import pytest
from cryptography import x509
from harness.waiting import PATIENCE

from equipoise.errors import NotAuthenticated, TooFast
from equipoise.model.identities import Caller, Role
from equipoise_server.identity.authority import Authority, certificate_to_pem, new_key
from equipoise_server.identity.certificate_forms import CLOCK_SKEW
from equipoise_server.identity.credential import credential_of
from equipoise_server.identity.policy import Rate
from equipoise_server.identity.registry import Registry
from equipoise_server.rpc.interceptors.authentication import (
    ACCEPTED_SECONDS,
    authentication,
    current_caller,
)
from equipoise_server.rpc.interceptors.call_rates import CallRates
from equipoise_server.rpc.interceptors.interceptor import Call, Context
from equipoise_server.rpc.interceptors.refused_certificates import Refusals
from equipoise_server.rpc.threads import SharedThreads
from equipoise_server.storage.idempotency import Request, make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.store import open_store
from equipoise_server.storage.tables.identity import certificates, identities

P = ParamSpec("P")
T = TypeVar("T")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
AUTHORITY = Authority.create("here", NOW)


def fresh() -> Request:
    """A request that was never made before."""
    return make_request("o", secrets.token_hex(8), "add_identity")


@dataclass
class Deployment:
    """A registry with alice in it, and a clock that can be set."""

    registry: Registry
    certificate: x509.Certificate
    threads: SharedThreads
    now: datetime = NOW
    ticks: float = 0.0
    per_second: float = 1000.0

    def __post_init__(self) -> None:
        rates = CallRates(dict.fromkeys(Rate, self.per_second), 10, clock=lambda: self.ticks)
        refusals = Refusals(1, 10)
        self.guard = authentication(
            self.registry, "here", lambda: self.now, self.threads, refusals, rates, lambda: self.ticks
        )

    async def caller(self, presented: Iterable[bytes]) -> Caller:
        context = cast(Context, FakeContext({"x509_pem_cert": presented}))
        async with self.guard(Call("/x/Y", context)):
            return current_caller()


class CountingThreads(SharedThreads):
    """Threads that count what they are given."""

    looked_up = 0

    async def run(self, caller: str, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        self.looked_up += 1
        return await super().run(caller, function, *arguments, **named)


@dataclass
class FakeContext:
    """What TLS tells of the peer."""

    told: Mapping[str, Iterable[bytes]] = field(default_factory=dict)

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        return self.told


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    store = open_store(f"sqlite:///{tmp_path / 'test.db'}")
    issued = AUTHORITY.issue_identity("alice", new_key().public_key(), NOW, days=10)
    registry = Registry(Operations(store, lambda: NOW, lambda: None), lambda *_: None)
    registry.add("alice", Role.ANALYST, credential_of(issued), fresh())
    threads = SharedThreads(4, "authenticating")
    yield Deployment(registry, issued, threads)
    threads.close()
    store.close()


async def test_the_caller_is_who_the_registry_says(deployment: Deployment) -> None:
    pem = certificate_to_pem(deployment.certificate)
    assert await deployment.caller([pem]) == Caller("alice", Role.ANALYST)
    # The role is the registry's and is asked for again on each call.
    with deployment.registry.operations.store.write() as connection:
        connection.execute(identities.update().values(role="auditor"))
    assert await deployment.caller([pem]) == Caller("alice", Role.AUDITOR)


async def test_validity_is_checked_on_every_call(deployment: Deployment) -> None:
    pem = certificate_to_pem(deployment.certificate)
    for moment, valid in (
        (NOW - CLOCK_SKEW, True),
        (NOW - CLOCK_SKEW - timedelta(seconds=1), False),
        (NOW + timedelta(days=10), True),
        (NOW + timedelta(days=10, seconds=1), False),
    ):
        deployment.now = moment
        if valid:
            assert (await deployment.caller([pem])).name == "alice"
        else:
            with pytest.raises(NotAuthenticated, match="has expired or is not valid yet"):
                await deployment.caller([pem])


async def test_revocation_is_checked_on_every_call(deployment: Deployment) -> None:
    pem = certificate_to_pem(deployment.certificate)
    await deployment.caller([pem])
    with deployment.registry.operations.store.write() as connection:
        connection.execute(certificates.update().values(revoked=1))
    with pytest.raises(NotAuthenticated, match="no longer"):
        await deployment.caller([pem])


async def test_calls_with_a_revoked_certificate_are_limited_and_no_others(deployment: Deployment) -> None:
    revoked = certificate_to_pem(deployment.certificate)
    with deployment.registry.operations.store.write() as connection:
        connection.execute(certificates.update().values(revoked=1))
    new = AUTHORITY.issue_identity("alice", new_key().public_key(), NOW)
    request = make_request("operator/o", "1", "renew_identity", "alice")
    deployment.registry.renew("alice", {Role.ANALYST}, credential_of(new), request)

    async def flood() -> None:
        for _ in range(1000):
            with suppress(NotAuthenticated):
                await deployment.caller([revoked])

    with pytest.raises(TooFast):
        await flood()
    assert await deployment.caller([certificate_to_pem(new)]) == Caller("alice", Role.ANALYST)


async def test_a_caller_beyond_its_rate_is_refused_before_it_is_looked_up(deployment: Deployment) -> None:
    threads = CountingThreads(1, "counting")
    slow = replace(deployment, per_second=0.1, threads=threads)
    pem = certificate_to_pem(slow.certificate)
    assert (await slow.caller([pem])).name == "alice"
    assert threads.looked_up == 1
    for _ in range(50):
        with pytest.raises(TooFast):
            await slow.caller([pem])
    assert threads.looked_up == 1
    # A certificate that was not accepted for a while may have been revoked.
    slow.ticks += ACCEPTED_SECONDS + 1
    with pytest.raises(TooFast):
        await slow.caller([pem])
    assert threads.looked_up == 2
    threads.close()


async def test_a_revoked_certificate_uses_up_no_call_of_its_holder(deployment: Deployment) -> None:
    revoked = certificate_to_pem(deployment.certificate)
    with deployment.registry.operations.store.write() as connection:
        connection.execute(certificates.update().values(revoked=1))
    new = AUTHORITY.issue_identity("alice", new_key().public_key(), NOW)
    request = make_request("operator/o", "1", "renew_identity", "alice")
    deployment.registry.renew("alice", {Role.ANALYST}, credential_of(new), request)
    slow = replace(deployment, per_second=0.1)
    for _ in range(5):
        with pytest.raises(NotAuthenticated):
            await slow.caller([revoked])
    assert (await slow.caller([certificate_to_pem(new)])).name == "alice"


async def test_a_certificate_that_was_never_recorded_is_refused(deployment: Deployment) -> None:
    unrecorded = AUTHORITY.issue_identity("alice", new_key().public_key(), NOW)
    with pytest.raises(NotAuthenticated):
        await deployment.caller([certificate_to_pem(unrecorded)])


async def test_a_flood_under_one_name_holds_up_no_other(deployment: Deployment) -> None:
    """However many calls of eve's wait to be looked up, alice's is the next."""
    release = threading.Event()
    try:
        flood = [asyncio.create_task(deployment.threads.run("eve", release.wait, PATIENCE)) for _ in range(100)]
        await asyncio.sleep(0)
        found = deployment.caller([certificate_to_pem(deployment.certificate)])
        assert await asyncio.wait_for(found, PATIENCE) == Caller("alice", Role.ANALYST)
        assert not any(each.done() for each in flood)
    finally:
        release.set()
    await asyncio.gather(*flood)


async def test_no_two_or_unreadable_certificates_are_refused(deployment: Deployment) -> None:
    pem = certificate_to_pem(deployment.certificate)
    for presented in ([], [pem, pem], [b"nonsense"]):
        with pytest.raises(NotAuthenticated):
            await deployment.caller(presented)


async def test_the_servers_own_certificate_is_no_clients(deployment: Deployment) -> None:
    server = AUTHORITY.issue_server(["localhost"], new_key().public_key(), NOW)
    with pytest.raises(NotAuthenticated, match="not made for clients"):
        await deployment.caller([certificate_to_pem(server)])


async def test_outside_a_call_there_is_no_caller() -> None:
    with pytest.raises(NotAuthenticated):
        current_caller()
