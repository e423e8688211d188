"""Servers that tell one analyst of another: put in place by a test's own program, never by what is shipped."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection, func, select

from equipoise.errors import WrongState
from equipoise.model.rounds import Share
from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise_server.mechanisms.interface import Plan
from equipoise_server.rounds import submissions as module
from equipoise_server.rounds.store.rounds import read_share
from equipoise_server.rounds.submissions import Submissions
from equipoise_server.storage.tables import shares, submissions

checked = Submissions._checked


def shared_balance() -> None:
    """Analysts may ask for whatever the others have left of all shares together."""

    def shared(connection: Connection, round_id: str, analyst: str) -> Share:
        share = read_share(connection, round_id, analyst)
        everybody = select(func.sum(shares.c.statements)).where(shares.c.round_id == round_id)
        others = (submissions.c.round_id == round_id) & (submissions.c.analyst != analyst)
        used = connection.execute(select(func.sum(submissions.c.statements)).where(others)).scalar_one() or 0
        return replace(share, statements=connection.execute(everybody).scalar_one() - used)

    vars(module)["read_share"] = shared


def query_count_in_an_error() -> None:
    """Whoever comes too late is told how much has been asked."""

    def telling(self: Submissions, analyst: str, round_id: str, workload: bytes) -> tuple[CompiledWorkload, Plan]:
        try:
            return checked(self, analyst, round_id, workload)
        except WrongState as error:
            asked = select(func.sum(submissions.c.queries)).where(submissions.c.round_id == round_id)
            with self.operations.store.read() as connection:
                queries = connection.execute(asked).scalar_one()
            raise WrongState(f"{error.message}; {queries} queries have been asked") from None

    Submissions._checked = telling  # type: ignore[method-assign]
