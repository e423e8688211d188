"""Servers that tell one analyst of another: put in place by a test's own program, never by what is shipped."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import replace

from sqlalchemy import Connection, func, select

from equipoise.errors import WrongState
from equipoise.model.submissions import Receipt
from equipoise_server.rounds import submissions as module
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.store.rounds import read_own_round
from equipoise_server.rounds.submissions import Submissions
from equipoise_server.storage.tables.round import shares, submissions

submit = Submissions.submit
submitting: ContextVar[bool] = ContextVar("submitting", default=False)


def shared_balance() -> None:
    """Analysts may submit whatever the others have left of all shares together."""

    def shared(connection: Connection, round_id: str, analyst: str, *, locked: bool = False) -> RoundRecord:
        record = read_own_round(connection, round_id, analyst, locked=locked)
        if not submitting.get():
            return record
        (share,) = record.terms.shares
        everybody = select(func.sum(shares.c.statements)).where(shares.c.round_id == round_id)
        others = (submissions.c.round_id == round_id) & (submissions.c.analyst != analyst)
        used = connection.execute(select(func.sum(submissions.c.statements)).where(others)).scalar_one() or 0
        left = replace(share, statements=connection.execute(everybody).scalar_one() - used)
        return replace(record, terms=replace(record.terms, shares=(left,)))

    def from_all(
        self: Submissions,
        analyst: str,
        round_id: str,
        request_id: str,
        workload: bytes,
        salt: bytes,
        questions: bytes | None = None,
    ) -> Receipt:
        token = submitting.set(True)
        try:
            return submit(self, analyst, round_id, request_id, workload, salt, questions)
        finally:
            submitting.reset(token)

    vars(module)["read_own_round"] = shared
    Submissions.submit = from_all  # type: ignore[method-assign]


def query_count_in_an_error() -> None:
    """Whoever submits too late is told how much has been asked."""

    def telling(
        self: Submissions,
        analyst: str,
        round_id: str,
        request_id: str,
        workload: bytes,
        salt: bytes,
        questions: bytes | None = None,
    ) -> Receipt:
        try:
            return submit(self, analyst, round_id, request_id, workload, salt, questions)
        except WrongState as error:
            asked = select(func.sum(submissions.c.queries)).where(submissions.c.round_id == round_id)
            with self.operations.store.read() as connection:
                queries = connection.execute(asked).scalar_one()
            raise WrongState(f"{error.message}; {queries} queries have been asked") from None

    Submissions.submit = telling  # type: ignore[method-assign]
