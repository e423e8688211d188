"""Translates errors: a caller gets one of our errors, or for an unexpected error only a random reference.

The log has the detail of an unexpected error under the reference. An analyst's statements must not reach the log
either. So for calls to the analysts' service the log has the type and the place of the error, but not its text.
"""

from __future__ import annotations

import asyncio
import secrets
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import structlog
from grpc import aio

from equipoise.errors import EquipoiseError, InternalError, TooFast
from equipoise_server.rpc.interceptors.interceptor import Call, Context

REASON_KEY = "equipoise-reason"
RETRY_KEY = "equipoise-retry-seconds"
MAX_MESSAGE = 2000  # bytes, up to three times as many on the wire, where the limit on metadata counts them, too
CUT = "…"
_ANALYSTS = "/equipoise.v1.AnalystService/"

_log = structlog.get_logger("equipoise.rpc")


@asynccontextmanager
async def hide_errors(call: Call) -> AsyncIterator[None]:
    """Ends a failed call with the status of its error and the reason in the trailing metadata."""
    try:
        yield
    except aio.AbortError:
        raise
    except (InternalError, aio.InternalError, aio.UsageError) as error:
        await _refuse_unexpected(call, error)
    except aio.BaseError:
        # Any other gRPC error means the server stopped mid-request; no client is listening.
        raise asyncio.CancelledError from None
    except TooFast as error:
        # `call_limits` logs such a refusal, at a limited rate, so that a flood of calls is no flood of lines.
        await refuse(call.context, error)
    except EquipoiseError as error:
        _log.info("refused", method=call.method, status=error.status, reason=error.reason)
        await refuse(call.context, error)
    except Exception as error:
        await _refuse_unexpected(call, error)


async def refuse(context: Context, error: EquipoiseError) -> None:
    """Ends a call with one of our errors; never returns."""
    trailing: tuple[tuple[str, str], ...] = ((REASON_KEY, error.reason),)
    if isinstance(error, TooFast) and error.retry_seconds:
        trailing = (*trailing, (RETRY_KEY, f"{error.retry_seconds:.3f}"))
    try:
        await context.abort(grpc.StatusCode[error.status], sendable(error.message), trailing_metadata=trailing)
    except aio.UsageError:
        # The stream was not read, and its end is being sent already. Sending the end waits for the reader.
        raise asyncio.CancelledError from None


def sendable(message: str) -> str:
    """Return the message, cut to the maximum length, without lone surrogates, which would prevent its sending."""
    encoded = message.encode("utf-8", "replace")
    if len(encoded) > MAX_MESSAGE:
        return encoded[: MAX_MESSAGE - len(CUT.encode())].decode("utf-8", "ignore") + CUT
    return encoded.decode("utf-8")


async def _refuse_unexpected(call: Call, error: Exception) -> None:
    reference = secrets.token_hex(8)
    described = traceback.TracebackException.from_exception(error)
    detail: dict[str, object] = {"places": _places(described)}
    if not call.method.startswith(_ANALYSTS):
        detail["detail"] = str(error)
    _log.error("unexpected", method=call.method, reference=reference, kind=type(error).__name__, **detail)
    message = f"something unexpected happened; the server's log has it under {reference}"
    await refuse(call.context, InternalError(message))


def _places(described: traceback.TracebackException) -> list[str]:
    """Return the places of the error and its causes, the outermost first, without values and texts."""
    cause = described.__cause__ or described.__context__
    earlier = _places(cause) if cause is not None else []
    return earlier + [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in described.stack]
