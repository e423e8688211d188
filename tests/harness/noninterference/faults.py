"""Servers that tell one analyst of another: put in place by a test's own program, never by what is shipped."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection, func, select

from equipoise.errors import WrongState
from equipoise.model.rounds import Share
from equipoise.model.submissions import Receipt
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.submissions import Submissions
from equipoise_server.storage.idempotency import Request
from equipoise_server.storage.tables import shares, submissions

open_to = Submissions._open_to


def shared_balance() -> None:
    """Analysts may ask for whatever the others have left of all shares together."""

    def opened(
        self: Submissions, connection: Connection, analyst: str, round_id: str, request: Request, *, locked: bool
    ) -> tuple[Share, RoundRecord | Receipt]:
        share, record = open_to(self, connection, analyst, round_id, request, locked=locked)
        everybody = select(func.sum(shares.c.statements)).where(shares.c.round_id == round_id)
        others = (submissions.c.round_id == round_id) & (submissions.c.analyst != analyst)
        used = connection.execute(select(func.sum(submissions.c.statements)).where(others)).scalar_one() or 0
        return replace(share, statements=connection.execute(everybody).scalar_one() - used), record

    Submissions._open_to = opened  # type: ignore[method-assign]


def query_count_in_an_error() -> None:
    """Whoever comes too late is told how much has been asked."""

    def opened(
        self: Submissions, connection: Connection, analyst: str, round_id: str, request: Request, *, locked: bool
    ) -> tuple[Share, RoundRecord | Receipt]:
        try:
            return open_to(self, connection, analyst, round_id, request, locked=locked)
        except WrongState as error:
            asked = select(func.sum(submissions.c.queries)).where(submissions.c.round_id == round_id)
            queries = connection.execute(asked).scalar_one()
            raise WrongState(f"{error.message}; {queries} queries have been asked") from None

    Submissions._open_to = opened  # type: ignore[method-assign]
