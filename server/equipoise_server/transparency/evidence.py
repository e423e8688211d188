"""The evidence with which one analyst verifies a round: the analyst's own items and those for all, with proofs.

Formal guarantees: the evidence is a function of public facts, of the analyst's own submission and share, and of
hashes, salts and signatures. The evidence's size, and the time when it is there, depend on public facts and the
analyst's own submission alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, select

from equipoise.errors import DataLoss, OutOfRange
from equipoise.records.evidence import Earlier, Evidence, OpenedItem, OpenedRecord, needed_keys
from equipoise.records.items import RoundItem
from equipoise.records.merkle import inclusion_path
from equipoise.records.record import Audience, Kind
from equipoise.records.record_layouts import read_item
from equipoise_server.storage.tables.round import submissions
from equipoise_server.storage.tables.transparency import record_items, records
from equipoise_server.transparency import log
from equipoise_server.transparency.log import SignedHead
from equipoise_server.transparency.signing import Signer

ENDS = (Kind.ROUND_RELEASED, Kind.ROUND_ABORTED)
STEPS = (Kind.ROUND_OPENED, Kind.ROUND_SEALED, *ENDS)
NOT_HELD = "since_size: the log has no signed checkpoint of that size"


def evidence_of(
    connection: Connection, signer: Signer, deployment: str, analyst: str, round_id: str, since_size: int
) -> Evidence | None:
    """Return the evidence of a round that has ended, under the newest checkpoint.

    Args:
        connection: to the store.
        signer: knows the log's public keys.
        deployment: the deployment's name.
        analyst: the analyst whose own items are opened.
        round_id: the round.
        since_size: the size of a checkpoint that the analyst already has; 0 for none.

    Returns:
        The evidence; None where the newest checkpoint does not cover all records of the round yet.

    Raises:
        OutOfRange: the log has no signed checkpoint of size `since_size`.
        DataLoss: a record of the round is missing.
    """
    steps = _steps(connection, round_id)
    head = log.signed_head(connection)
    if head is None or any(step.index is None or step.index >= head.size for step in steps):
        return None
    if Kind(steps[-1].kind) not in ENDS:
        raise DataLoss(f"the round {round_id} has ended without a record")
    submitted = connection.execute(
        select(submissions.c.receipt, submissions.c.salt).where(
            submissions.c.round_id == round_id, submissions.c.analyst == analyst
        )
    ).first()
    receipt, salt = (None, None) if submitted is None else submitted
    earlier = None if since_size == 0 else _earlier(connection, head, since_size)
    notes = [head.note] if earlier is None else [head.note, earlier.checkpoint]
    keys = needed_keys(signer.verifier_keys(connection), notes, receipt)
    return Evidence(
        deployment=deployment,
        round_id=round_id,
        analyst=analyst,
        checkpoint=head.note,
        keys=tuple(sorted(key.to_text() for key in keys)),
        earlier=earlier,
        records=tuple(opened_record(connection, step, head, analyst) for step in steps),
        receipt=receipt,
        salt=salt,
    )


def workload_piece(connection: Connection, analyst: str, round_id: str, first: int, length: int) -> bytes:
    """Return up to `length` bytes of the analyst's workload in a round, from byte `first` on.

    The result is empty beyond the workload's end, and where there is no workload.

    Args:
        connection: to the store.
        analyst: whose workload it is.
        round_id: the round or session.
        first: the place of the first byte, from 0.
        length: how many bytes at most.
    """
    own = (submissions.c.round_id == round_id) & (submissions.c.analyst == analyst)
    piece = connection.execute(select(func.substr(submissions.c.workload, 1 + first, length)).where(own)).scalar()
    return bytes(piece or b"")


@dataclass(frozen=True)
class RecordedStep:
    """The record of a step; `index` is None until the record is in the log."""

    position: int
    kind: str
    index: int | None
    leaf: bytes


def _steps(connection: Connection, round_id: str) -> list[RecordedStep]:
    """Return the record of the round's dataset, then the records of the round's steps in their order."""
    steps = _steps_where(
        connection, (records.c.round_id == round_id) & records.c.kind.in_([step.value for step in STEPS])
    )
    if not steps:
        raise DataLoss(f"there are no records of the round {round_id}")
    opened = select(record_items.c.content).where(
        record_items.c.record == steps[0].position, record_items.c.audience == Audience.ROUND.value
    )
    opening = read_item(connection.execute(opened).scalar_one(), RoundItem)
    # The name is in the condition because it is indexed, and there may be very many records.
    dataset = (records.c.dataset == opening.dataset) & (records.c.kind == Kind.DATASET_REGISTERED.value)
    return [*_steps_where(connection, dataset & (records.c.root == opening.dataset_root)), *steps]


def _steps_where(connection: Connection, which: ColumnElement[bool]) -> list[RecordedStep]:
    columns = (records.c.position, records.c.kind, records.c.log_index, records.c.leaf)
    rows = connection.execute(select(*columns).where(which).order_by(records.c.position))
    return [RecordedStep(*row) for row in rows]


def opened_record(connection: Connection, step: RecordedStep, head: SignedHead, analyst: str = "") -> OpenedRecord:
    """Return a record of the log with the items that speak to all, and those of one analyst.

    Args:
        connection: to the store.
        step: the record, which is in the log.
        head: the log's size and root that the proofs lead to.
        analyst: whose own items are opened; empty for nobody's.
    """
    items = connection.execute(
        select(record_items).where(record_items.c.record == step.position).order_by(record_items.c.place)
    ).all()
    hashes = [item.hash for item in items]
    own = [
        OpenedItem(item.place, item.content, item.salt, tuple(inclusion_path(hashes, item.place)))
        for item in items
        if item.audience == Audience.ROUND.value
        or (item.audience == Audience.ANALYST.value and item.analyst == analyst)
    ]
    assert step.index is not None
    path = log.inclusion(connection, step.index, head.size)
    return OpenedRecord(step.leaf, step.index, tuple(path), tuple(own))


def _earlier(connection: Connection, head: SignedHead, size: int) -> Earlier:
    head_then = log.signed_head(connection, size) if size <= head.size else None
    if head_then is None:
        raise OutOfRange(NOT_HELD)
    return Earlier(head_then.note, tuple(log.consistency(connection, size, head.size)))
