"""Signing what analysts are told, so that they can show it."""

from __future__ import annotations

import structlog
from sqlalchemy import Connection

from equipoise.errors import InvalidArgument, Unavailable
from equipoise_server.transparency.signing import Signer

log = structlog.get_logger(__name__)


def signed(signer: Signer, connection: Connection, payload_type: str, payload: bytes) -> bytes:
    """A receipt's envelope. Raises `Unavailable` where it cannot be signed."""
    try:
        return signer.envelope(connection, payload_type, payload)
    except InvalidArgument as error:
        # A key that was added while this server runs, and whose file is not here: no analyst's doing.
        log.error("receipt_not_signed", problem=error.message)
        raise Unavailable("receipts cannot be signed now") from None
