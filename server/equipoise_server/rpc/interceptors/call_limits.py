"""The limits of each caller. Every caller is counted separately, so no caller's calls limit another caller.

A refusal depends only on the caller's own calls and the configuration, and its text is always the same.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog

from equipoise.errors import TooFast
from equipoise_server.identity.policy import POLICY, MethodPolicy, Rate
from equipoise_server.rpc.interceptors.authentication import current_caller
from equipoise_server.rpc.interceptors.interceptor import Call, Guard
from equipoise_server.rpc.interceptors.token_bucket import TOO_OFTEN, Bucket, once_a_minute

TOO_MANY = "too many calls of yours are open at once"
TOO_SPREAD = "your calls come over too many connections at once"

_log = structlog.get_logger("equipoise.rpc")


@dataclass(frozen=True)
class CallLimits:
    """The limits of each caller: open calls, uploads and connections, and rates.

    `rates` are average calls per second; a caller may make the calls of `burst_seconds` seconds at once.
    """

    calls: int
    uploads: int
    connections: int
    rates: Mapping[Rate, float]
    burst_seconds: float


@dataclass
class _Account:
    """The current use of one caller. Accounts are never removed: each belongs to a registered identity."""

    buckets: dict[Rate, Bucket]
    lines: Bucket
    calls: int = 0
    uploads: int = 0
    connections: Counter[str] = field(default_factory=Counter)


def call_limit(
    limits: CallLimits, policy: Mapping[str, MethodPolicy] = POLICY, clock: Callable[[], float] = time.monotonic
) -> Guard:
    """Return the guard that refuses calls beyond their caller's limits with `TooFast`.

    Args:
        limits: of the configuration.
        policy: the row of each method.
        clock: in seconds, from any start.
    """
    accounts: dict[str, _Account] = {}

    def account(name: str) -> _Account:
        if name not in accounts:
            now, burst = clock(), limits.burst_seconds
            accounts[name] = _Account(
                {kind: Bucket(rate, max(1, rate * burst), now) for kind, rate in limits.rates.items()},
                once_a_minute(now),
            )
        return accounts[name]

    def uploads(call: Call) -> bool:
        return policy[call.method].rate is Rate.UPLOAD

    def check(own: _Account, call: Call, peer: str) -> None:
        # Check the rate first: calls that are refused for another reason cost the server, too.
        wait = own.buckets[policy[call.method].rate].take(clock())
        if wait:
            raise TooFast(TOO_OFTEN, retry_seconds=wait)
        if own.calls >= limits.calls or (uploads(call) and own.uploads >= limits.uploads):
            raise TooFast(TOO_MANY)
        if peer not in own.connections and len(own.connections) >= limits.connections:
            raise TooFast(TOO_SPREAD)

    @asynccontextmanager
    async def limit(call: Call) -> AsyncIterator[None]:
        name, peer = current_caller().name, call.context.peer()
        own = account(name)
        try:
            check(own, call, peer)
        except TooFast as refusal:
            if not own.lines.take(clock()):
                _log.warning("limited", caller=name, problem=refusal.message)
            raise
        own.calls += 1
        own.uploads += uploads(call)
        own.connections[peer] += 1
        try:
            yield
        finally:
            own.calls -= 1
            own.uploads -= uploads(call)
            own.connections[peer] -= 1
            if not own.connections[peer]:
                del own.connections[peer]

    return limit
