"""Whether the caller's role may call the method: the policy table, applied before the request is parsed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from equipoise_server.identity.policy import authorise
from equipoise_server.rpc.interceptors.authentication import current_caller
from equipoise_server.rpc.interceptors.interceptor import Call


@asynccontextmanager
async def check_role(call: Call) -> AsyncIterator[None]:
    """The guard that lets a call through only where the method's row names the caller's role."""
    authorise(current_caller().role, call.method)
    yield
