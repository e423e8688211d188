"""What one caller may take of the server. Each caller is counted alone: nobody's calls limit another's."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from equipoise.errors import TooFast
from equipoise_server.rpc.authentication import current_caller
from equipoise_server.rpc.guards import Call, Guard


def call_limit(calls_per_caller: int, uploads_per_caller: int) -> Guard:
    """The guard that limits how many calls, and how many uploads among them, a caller has open at once."""
    calls: Counter[str] = Counter()
    uploads: Counter[str] = Counter()

    @asynccontextmanager
    async def limit(call: Call) -> AsyncIterator[None]:
        name = current_caller().name
        if calls[name] >= calls_per_caller or (call.uploads and uploads[name] >= uploads_per_caller):
            raise TooFast("too many calls of yours are open at once")
        calls[name] += 1
        uploads[name] += call.uploads
        try:
            yield
        finally:
            calls[name] -= 1
            uploads[name] -= call.uploads
            if not calls[name]:
                # Callers come and go; the tables keep only those who are here.
                del calls[name], uploads[name]

    return limit
