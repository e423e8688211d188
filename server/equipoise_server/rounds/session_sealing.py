"""When a session is sealed, its statements become workloads; the final run must reproduce the answers given.

From then on a session is a round. Each analyst's workload consists of the analyst's statements with their slots,
and is committed to under the analyst's salt. The chain of the last receipt (`equipoise.records.receipts`) binds the
answers that the analyst was given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, select

from equipoise.errors import DataLoss
from equipoise.model.rounds import Share
from equipoise.records.receipts import chain_start
from equipoise.wire.outline import asked_to_bytes
from equipoise.wire.results import answers_from_chunk
from equipoise_server.computation.session import AnswerChain
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.storage.tables.round import submissions
from equipoise_server.storage.tables.session import asked, attached


def collected(connection: Connection, record: RoundRecord, _: datetime) -> Mapping[str, object]:
    """Store the workload of each analyst who asked a statement in a session; do nothing for any other round.

    Returns:
        No changed columns, as a step of the round.

    Raises:
        DataLoss: stored answers are missing.
    """
    if record.terms.session is not None:
        for share in record.terms.shares:
            _collect(connection, record.id, share)
    return {}


def read_answer_chains(connection: Connection, deployment: str, round_id: str) -> dict[str, AnswerChain]:
    """Return the chain that binds each analyst's answers in a session, by analyst; empty for any other round.

    Args:
        connection: to the store.
        deployment: the deployment's name.
        round_id: the round or session.
    """
    salts = select(attached.c.analyst, attached.c.salt).where(attached.c.round_id == round_id)
    chains = {}
    for analyst, salt in connection.execute(salts).all():
        own = (asked.c.round_id == round_id) & (asked.c.analyst == analyst)
        last = select(asked.c.chain).where(own).order_by(asked.c.sequence.desc()).limit(1)
        end = connection.execute(last).scalar()
        if end is not None:
            chains[analyst] = AnswerChain(chain_start(deployment, round_id, analyst, salt), end)
    return chains


def _collect(connection: Connection, round_id: str, share: Share) -> None:
    own = (asked.c.round_id == round_id) & (asked.c.analyst == share.analyst)
    columns = (asked.c.sequence, asked.c.slot, asked.c.statement)
    rows = connection.execute(select(*columns).where(own).order_by(asked.c.sequence)).all()
    if not rows:
        return
    last = connection.execute(select(asked).where(own).order_by(asked.c.sequence.desc()).limit(1)).one()
    salt = select(attached.c.salt).where(attached.c.round_id == round_id, attached.c.analyst == share.analyst)
    chunk = answers_from_chunk(last.chunk)
    if [row.sequence for row in rows] != list(range(1, len(rows) + 1)):
        raise DataLoss(f"answers of the session {round_id} are missing")
    workload = asked_to_bytes([row.statement for row in rows], [row.slot for row in rows])
    connection.execute(
        submissions.insert().values(
            round_id=round_id,
            analyst=share.analyst,
            workload=workload,
            digest=hashlib.sha256(workload).digest(),
            statements=len(rows),
            queries=chunk.first_query + len(chunk.answers),
            accept_time=last.due_time,
            salt=connection.execute(salt).scalar_one(),
            receipt=last.envelope,
        )
    )
