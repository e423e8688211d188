"""The stream that stays open between two times of asking, because attaching is as much work as answering."""

from __future__ import annotations

import threading

from equipoise.clients.session_stream import SessionStream
from equipoise.profile.receipt_store import ReceiptHolder


class KeptStream:
    """The stream to the grant that was asked last, while nobody asks on it. Thread-safe.

    It is one only, because each counts as one of the caller's open calls.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stream: SessionStream | None = None

    def take(self, session_id: str, holder: ReceiptHolder | None) -> SessionStream | None:
        """Returns the stream to this grant for the caller alone; None where there is none that can be used.

        Args:
            session_id: the grant.
            holder: whom its receipts must be for now.
        """
        with self._lock:
            kept = self._stream
            if kept is None or kept.session_id != session_id:
                return None
            self._stream = None
        if kept.open and kept.holder == holder:
            return kept
        kept.close()
        return None

    def keep(self, stream: SessionStream | None) -> None:
        """Keeps this stream, and ends the one that was kept."""
        with self._lock:
            before, self._stream = self._stream, stream
        if before is not None:
            before.close()
