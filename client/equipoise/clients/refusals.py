"""How calls ended without an answer: gRPC's errors as ours.

Whatever a server says in them may be a lie, or meant for the terminal that it is printed on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, cast

import grpc

from equipoise.errors import (
    BY_REASON,
    EquipoiseError,
    InternalError,
    NotAuthenticated,
    NotServed,
    TooFast,
    TooLarge,
    Unavailable,
    from_reason,
)
from equipoise.wire.printable import printable

REASON_KEY = "equipoise-reason"
RETRY_KEY = "equipoise-retry-seconds"


def error_of(error: grpc.RpcError, target: str, deadline_seconds: float) -> EquipoiseError:
    """Returns what a call ended with, as one of our errors.

    Args:
        error: what gRPC raised.
        target: the server's host and port; empty where nobody knows.
        deadline_seconds: how long the call was allowed to take.
    """
    call = cast("_EndedCall", error)
    # Python itself prints the error where nobody catches it.
    details = printable(call.details() or "")
    trailing = dict(call.trailing_metadata() or ())
    reason = str(trailing.get(REASON_KEY, ""))
    if reason == TooFast.reason:
        return TooFast(details, _seconds(trailing.get(RETRY_KEY, "")))
    if reason in BY_REASON:
        return from_reason(reason, details)
    place = target or "the server"
    match call.code():
        case grpc.StatusCode.UNAVAILABLE if "CERTIFICATE_VERIFY_FAILED" in details:
            return NotAuthenticated(f"{place} is not a server that this profile's authority certified")
        case grpc.StatusCode.UNAVAILABLE:
            refusal = " (or it does not accept this profile's certificate)" if "closed" in details else ""
            return Unavailable(f"{place} cannot be reached{refusal}: {details}")
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return Unavailable(f"{place} did not answer within {deadline_seconds:g} seconds")
        case grpc.StatusCode.CANCELLED:
            return Unavailable("the connection was closed")
        case grpc.StatusCode.UNAUTHENTICATED:
            return NotAuthenticated(details)
        case grpc.StatusCode.UNIMPLEMENTED:
            return NotServed(details)
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return TooLarge(details)
        case _:
            return InternalError(details or "something unexpected happened")


def ended_here(error: grpc.RpcError) -> bool:
    """Tells whether waiting cannot help: the caller closed the connection, or time is up already."""
    return cast("_EndedCall", error).code() in (grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)


def _seconds(said: object) -> float:
    try:
        return float(str(said))
    except ValueError:
        return 0.0


class _EndedCall(Protocol):
    """What gRPC's errors of ended calls offer; its own base class says nothing of it."""

    def code(self) -> grpc.StatusCode: ...
    def details(self) -> str | None: ...
    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None: ...
