"""The audit trail: one line of the log for each call whose row of the policy names an event.

A line has the caller, the outcome and the identifiers below, and no other content of the request. Identifiers are
cut to a maximum length, because a refused call may carry anything in them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from google.protobuf.message import Message

from equipoise.errors import EquipoiseError, InternalError
from equipoise.model.identities import Caller
from equipoise_server.identity.policy import MethodPolicy

MAX_IDENTIFIER = 100  # characters of an identifier
# The fields of requests and responses that name the object of the call.
_IDENTIFIERS = {
    "round_id": ("round_id", "header.round_id", "detail.round.id", "session_id", "attach.session_id"),
    "dataset": ("dataset", "terms.dataset"),
    "name": ("name",),
    "account": ("account",),
}

_log = structlog.get_logger("equipoise.audit")


class Entry:
    """The identifiers of a call that are known so far."""

    def __init__(self) -> None:
        self.named: dict[str, str] = {}

    def note(self, message: Message) -> None:
        """Takes the identifiers of a request or a response."""
        for key, paths in _IDENTIFIERS.items():
            for path in paths:
                if text := _text(message, path):
                    self.named[key] = text[:MAX_IDENTIFIER]


@contextmanager
def recorded(row: MethodPolicy, caller: Caller) -> Iterator[Entry]:
    """Logs the call when it ends, with its outcome: OK, CANCELLED, or the reason of the error."""
    entry, outcome = Entry(), "OK"
    try:
        yield entry
    except EquipoiseError as error:
        outcome = error.reason
        raise
    except asyncio.CancelledError:
        outcome = "CANCELLED"
        raise
    except BaseException:
        outcome = InternalError.reason
        raise
    finally:
        if row.event:
            about = {**entry.named, "caller": caller.name, "role": caller.role.value}
            _log.info(row.event, outcome=outcome, **about)


def _text(message: Message, path: str) -> str:
    *outer, last = path.split(".")
    for name in outer:
        if name not in message.DESCRIPTOR.fields_by_name or not message.HasField(name):
            return ""
        message = getattr(message, name)
    value = getattr(message, last) if last in message.DESCRIPTOR.fields_by_name else ""
    return value if isinstance(value, str) else ""
