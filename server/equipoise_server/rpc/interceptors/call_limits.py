"""The limits of each caller's open calls. Every caller is counted separately, so none limits another.

A refusal depends only on the caller's own calls and the configuration, and its text is always the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from equipoise.errors import TooFast
from equipoise_server.identity.policy import POLICY, MethodPolicy, Rate, rate_of
from equipoise_server.rpc.interceptors.authentication import current_caller
from equipoise_server.rpc.interceptors.call_rates import CallRates
from equipoise_server.rpc.interceptors.interceptor import Call, Guard

TOO_MANY = "too many calls of yours are open at once"
TOO_SPREAD = "your calls come over too many connections at once"


@dataclass(frozen=True)
class OpenCallLimits:
    """The limits of each caller: open calls, uploads among them, and the connections that they use."""

    calls: int
    uploads: int
    connections: int


@dataclass
class _Account:
    """The current use of one caller. Accounts are never removed: each belongs to a registered identity."""

    calls: int = 0
    uploads: int = 0
    connections: Counter[str] = field(default_factory=Counter)


def call_limit(limits: OpenCallLimits, rates: CallRates, policy: Mapping[str, MethodPolicy] = POLICY) -> Guard:
    """Return the guard that refuses calls beyond their caller's limits with `TooFast`.

    Args:
        limits: of the configuration.
        rates: which authentication has counted the call against; they log refusals.
        policy: the row of each method.
    """
    accounts: dict[str, _Account] = {}

    def check(own: _Account, upload: bool, peer: str) -> None:
        if own.calls >= limits.calls or (upload and own.uploads >= limits.uploads):
            raise TooFast(TOO_MANY)
        if peer not in own.connections and len(own.connections) >= limits.connections:
            raise TooFast(TOO_SPREAD)

    @asynccontextmanager
    async def limit(call: Call) -> AsyncIterator[None]:
        name, peer = current_caller().name, call.context.peer()
        upload = rate_of(call.method, policy) is Rate.UPLOAD
        own = accounts.setdefault(name, _Account())
        try:
            check(own, upload, peer)
        except TooFast as refusal:
            rates.log(name, refusal)
            raise
        own.calls += 1
        own.uploads += upload
        own.connections[peer] += 1
        try:
            yield
        finally:
            own.calls -= 1
            own.uploads -= upload
            own.connections[peer] -= 1
            if not own.connections[peer]:
                del own.connections[peer]

    return limit
