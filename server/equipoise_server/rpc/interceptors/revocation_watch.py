"""Ends open calls when their certificates expire or are revoked.

Each call is authenticated when it begins, but a stream may last for hours. So every few seconds the server checks
whether the certificates of all open calls have expired, or were revoked at this server or at another one that
shares the store. If so, the call is ended wherever it waits, even if its reader does not read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import structlog

from equipoise.errors import EquipoiseError, NotAuthenticated, Unavailable
from equipoise_server.clock import Clock
from equipoise_server.identity.credential import Credential
from equipoise_server.identity.registry import NOT_IN_FORCE, Registry

# Both together are well below the 60 seconds after which a revocation must have taken effect everywhere.
RECHECK_SECONDS = 5.0
IN_DOUBT_SECONDS = 20.0  # a store that does not answer may contain a revocation

_log = structlog.get_logger("equipoise.rpc")


class OpenCalls:
    """The open calls of one server. To be used in the event loop that answers the calls."""

    def __init__(self, registry: Registry, clock: Clock, recheck_seconds: float = RECHECK_SECONDS) -> None:
        self._registry = registry
        self._clock = clock
        self._recheck_seconds = recheck_seconds
        self._credentials: dict[asyncio.Timeout, Credential] = {}
        self._problems: dict[asyncio.Timeout, EquipoiseError] = {}
        self._watching: asyncio.Task[None] | None = None
        # A separate thread, so that no load of calls can delay a revocation.
        self._thread = ThreadPoolExecutor(1, "equipoise-revocations")

    @asynccontextmanager
    async def while_in_force(self, credential: Credential) -> AsyncIterator[None]:
        """Let an authenticated call run in the context as long as its certificate is in force.

        Raises:
            NotAuthenticated: The certificate has expired or was revoked.
            Unavailable: The store does not tell any more which certificates are revoked.
        """
        cut = asyncio.timeout(None)
        try:
            async with cut:
                self._credentials[cut] = credential
                if self._watching is None:
                    self._watching = asyncio.create_task(self._watch())
                yield
        except TimeoutError:
            if (problem := self._problems.get(cut)) is not None:
                raise problem from None
            raise
        finally:
            self._credentials.pop(cut, None)
            self._problems.pop(cut, None)

    async def _watch(self) -> None:
        """Check the certificates regularly, as long as calls are open."""
        loop = asyncio.get_running_loop()
        known_at = loop.time()
        try:
            while self._credentials:
                await asyncio.sleep(self._recheck_seconds)
                asked_at, asked = loop.time(), dict(self._credentials)
                try:
                    asking = loop.run_in_executor(self._thread, self._no_longer_in_force, asked)
                    for cut in await asyncio.wait_for(asking, IN_DOUBT_SECONDS):
                        self._end(cut, NotAuthenticated(NOT_IN_FORCE))
                    known_at = asked_at
                except Exception as error:
                    _log.error("revocations_unknown", kind=type(error).__name__)
                    if loop.time() - known_at > IN_DOUBT_SECONDS:
                        for cut in asked:
                            self._end(
                                cut, Unavailable("the server cannot find out now which certificates are revoked")
                            )
        finally:
            self._watching = None

    def _no_longer_in_force(self, asked: Mapping[asyncio.Timeout, Credential]) -> list[asyncio.Timeout]:
        now = self._clock()
        in_force = self._registry.in_force({credential.id for credential in asked.values()})
        return [
            cut for cut, credential in asked.items() if credential.id not in in_force or now > credential.expiry
        ]

    def _end(self, cut: asyncio.Timeout, problem: EquipoiseError) -> None:
        # A call that has ended meanwhile is no longer listed, and a call that is being ended is not ended twice.
        if self._credentials.pop(cut, None) is not None:
            self._problems[cut] = problem
            cut.reschedule(asyncio.get_running_loop().time())
