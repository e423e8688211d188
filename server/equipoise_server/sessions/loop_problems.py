"""What callers are told when the thread that answers a session fails."""

from __future__ import annotations

import structlog
from sqlalchemy.exc import IntegrityError

from equipoise.errors import DataLoss, EquipoiseError, Unavailable, WrongState
from equipoise_server.workers.session_process import NOT_NOW

log = structlog.get_logger(__name__)


def problem_of(error: Exception, session_id: str) -> EquipoiseError | None:
    """Return the error that all waiting callers get; None if the session was sealed or aborted meanwhile.

    Args:
        error: what ended the thread.
        session_id: the session.
    """
    if isinstance(error, WrongState):
        return None
    if isinstance(error, DataLoss | Unavailable):
        return error
    if not isinstance(error, IntegrityError):
        # The error's text may contain statements, so only its type is logged.
        log.error("session_not_answered", session_id=session_id, kind=type(error).__name__)
    # An integrity error: another server has answered the session, too, and the answers that it stored count.
    return Unavailable(NOT_NOW)
