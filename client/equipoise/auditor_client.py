"""What an auditor does: read every record, change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from equipoise import messages
from equipoise.connection import Connection
from equipoise.v1 import auditor_pb2
from equipoise.views import JournalEntry, RoundDetail

SERVICE = "/equipoise.v1.AuditorService"


class Auditor:
    """An auditor's way to a server. Thread-safe; every method may raise `equipoise.errors.EquipoiseError`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    def from_profile(cls, directory: str | Path) -> Self:
        """An auditor with a profile, such as the one that `equipoise-server init` made."""
        return cls(Connection.from_profile(directory))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection and every call on it."""
        self._connection.close()

    def rounds(self) -> Iterator[RoundDetail]:
        """All rounds, newest first."""
        for page in self._connection.pages(
            f"{SERVICE}/ListAuditRounds",
            lambda token: auditor_pb2.ListAuditRoundsRequest(page_token=token),
            auditor_pb2.ListAuditRoundsResponse,
        ):
            yield from map(messages.round_detail, page.details)

    def journal(self) -> Iterator[JournalEntry]:
        """The budget journal from its first entry on."""
        for page in self._connection.pages(
            f"{SERVICE}/ListJournal",
            lambda token: auditor_pb2.ListJournalRequest(page_token=token),
            auditor_pb2.ListJournalResponse,
        ):
            yield from map(messages.journal_entry, page.entries)
