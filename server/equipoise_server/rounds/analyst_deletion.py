"""Deleting an analyst: access, questions and answers go; name, shares and charges stay.

What was charged was spent on the people in the table and stays in their accounts, whoever asked; and another
person under the same name would begin with an account that somebody else had used. So nothing of a budget is freed,
and the name is never given again.

A round in which a deleted analyst asked something cannot be computed again, as its workload is gone: neither by an
auditor nor by anybody else. What was released to the others stays the same bytes. Of what was recorded about the
analyst only the hashes stay, so that everybody else can verify as before.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, or_, select

from equipoise.errors import WrongState
from equipoise.model.identities import Role
from equipoise.model.rounds import RoundState
from equipoise.model.times import to_microseconds
from equipoise.records.record import Audience
from equipoise_server.identity.registry import check_there, mark_deleted
from equipoise_server.storage.idempotency import forget_caller, make_request
from equipoise_server.storage.operations import Operations, no_answer
from equipoise_server.storage.tables.round import result_chunks, rounds, runs, shares, stream_digests, submissions
from equipoise_server.storage.tables.session import asked, attached
from equipoise_server.storage.tables.transparency import record_items


def delete_analyst(operations: Operations, name: str, request_id: str, caller: str = "") -> None:
    """Remove an analyst with its workloads and results.

    Raises `NotFound`; `WrongState` before its last round has ended.
    """
    request = make_request(f"operator/{caller}", request_id, "delete_analyst", name)

    def work(connection: Connection, now: datetime) -> str:
        check_there(connection, name, {Role.ANALYST})
        unfinished = _unfinished(connection, name, now)
        if unfinished is not None:
            raise WrongState(
                f"{name} has a share in the round {unfinished}, whose results are not out: let it end, or "
                "abort it; revoking keeps an analyst out at once"
            )
        _remove(connection, name, now)
        return ""

    operations.carry_out(request, work, no_answer)


def _remove(connection: Connection, name: str, now: datetime) -> None:
    # Marked first: what was released is kept from removal as long as its analyst is there.
    mark_deleted(connection, name, now)
    # By round, as these tables are kept by round: others' rows, of which there are more by far, are not looked at.
    shared = select(shares.c.round_id).where(shares.c.analyst == name)
    answered = select(runs.c.id).where(runs.c.round_id.in_(shared))
    for brought in (submissions, attached, asked):
        connection.execute(brought.delete().where(brought.c.round_id.in_(shared), brought.c.analyst == name))
    for results in (result_chunks, stream_digests):
        connection.execute(results.delete().where(results.c.run_id.in_(answered), results.c.analyst == name))
    # Their answers are receipts, with the salts and digests of workloads.
    forget_caller(connection, f"analyst/{name}")
    # The hashes stay, and with them every record's root.
    about = (record_items.c.analyst == name) & (record_items.c.audience == Audience.ANALYST.value)
    connection.execute(record_items.update().where(about).values(salt=None, content=None))


def _unfinished(connection: Connection, name: str, now: datetime) -> str | None:
    """A round with a share of the analyst that has not ended, or whose results open only later."""
    ended = [state.value for state in RoundState if state.ended]
    open_yet = or_(rounds.c.state.not_in(ended), rounds.c.release_time > to_microseconds(now))
    query = select(rounds.c.id).join(shares, shares.c.round_id == rounds.c.id)
    ids = connection.execute(query.where(shares.c.analyst == name, open_yet).order_by(rounds.c.position))
    return ids.scalars().first()
