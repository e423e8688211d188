"""Deletes an analyst: access, workloads and results are removed; name, shares and charges stay.

Deletion frees no budget: every charge was spent on the people in the table, whoever asked. The name is never given
to another analyst, because that analyst would begin with an account that somebody else had used.

Nobody, not even an auditor, can compute a round again in which a deleted analyst took part, because the workload is
gone. The results that were released to the other analysts stay the same bytes. Of the records about the analyst
only the hashes stay, so that everybody else can verify as before.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, or_, select

from equipoise.errors import WrongState
from equipoise.model.identities import Role
from equipoise.model.rounds import RoundState
from equipoise.model.times import to_microseconds
from equipoise.records.record import Audience
from equipoise_server.identity.registry import check_there
from equipoise_server.storage.idempotency import forget_caller, make_request
from equipoise_server.storage.operations import Operations, no_answer
from equipoise_server.storage.tables.round import result_chunks, rounds, runs, shares, stream_digests, submissions
from equipoise_server.storage.tables.session import asked, attached, grant_requests
from equipoise_server.storage.tables.transparency import record_items
from equipoise_server.transparency.identity_records import recorded_registry


def delete_analyst(operations: Operations, name: str, request_id: str, caller: str = "") -> None:
    """Remove an analyst with its workloads and results.

    Args:
        operations: carries the request out on the store.
        name: the analyst's name.
        request_id: makes the call safe to repeat.
        caller: the operator's name.

    Raises:
        NotFound: there is no such analyst.
        WrongState: the analyst has a share in a round that has not ended, or whose results are not open yet.
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
        # Mark the analyst first: the store refuses to remove released results of an analyst who is not deleted.
        recorded_registry(operations).mark_deleted(connection, name, request.caller, now)
        _remove(connection, name)
        return ""

    operations.carry_out(request, work, no_answer)


def _remove(connection: Connection, name: str) -> None:
    # Delete by round: the tables are indexed by round, so the far more numerous rows of others are not read.
    shared = select(shares.c.round_id).where(shares.c.analyst == name)
    answered = select(runs.c.id).where(runs.c.round_id.in_(shared))
    for brought in (submissions, attached, asked):
        connection.execute(brought.delete().where(brought.c.round_id.in_(shared), brought.c.analyst == name))
    for results in (result_chunks, stream_digests):
        connection.execute(results.delete().where(results.c.run_id.in_(answered), results.c.analyst == name))
    connection.execute(grant_requests.delete().where(grant_requests.c.analyst == name))
    # The stored responses of the analyst's requests are receipts, with the salts and digests of workloads.
    forget_caller(connection, f"analyst/{name}")
    # The hashes stay, so every record keeps its root.
    about = (record_items.c.analyst == name) & (record_items.c.audience == Audience.ANALYST.value)
    connection.execute(record_items.update().where(about).values(salt=None, content=None))


def _unfinished(connection: Connection, name: str, now: datetime) -> str | None:
    """Return the first round with a share of the analyst that has not ended or whose results are not open yet."""
    ended = [state.value for state in RoundState if state.ended]
    open_yet = or_(rounds.c.state.not_in(ended), rounds.c.release_time > to_microseconds(now))
    query = select(rounds.c.id).join(shares, shares.c.round_id == rounds.c.id)
    ids = connection.execute(query.where(shares.c.analyst == name, open_yet).order_by(rounds.c.position))
    return ids.scalars().first()
