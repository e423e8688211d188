"""What the store says of a round's steps and submissions, compared with what was recorded and signed of them.

The state decides who may see what: a round that seems released shows its answers, and one with an earlier release
time shows them too soon.
"""

from __future__ import annotations

import hashlib
from typing import Any

from sqlalchemy import Connection, Row, select

from equipoise.errors import VerificationFailed
from equipoise.model.rounds import RoundState
from equipoise.model.times import to_microseconds
from equipoise.profile.receipt_store import read_receipt, read_session_receipt
from equipoise.records.items import AbortItem, ReleaseItem, ResultItem, SealItem
from equipoise.records.promises import Promise
from equipoise.records.receipts import ReceiptPayload
from equipoise.records.record import Kind, workload_commitment
from equipoise_server.computation.streams import StreamDigest
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.store.results import read_stream_digests
from equipoise_server.rounds.store.rounds import read_audit_nonce
from equipoise_server.rounds.store.step_records import recorded_promise
from equipoise_server.rounds.store.stored_records import damaged, read_record
from equipoise_server.storage.tables.round import submissions
from equipoise_server.storage.tables.transparency import records

_STEPS: tuple[Kind, ...] = (Kind.ROUND_OPENED, Kind.ROUND_SEALED, Kind.ROUND_RELEASED, Kind.ROUND_ABORTED)

# The kinds of records that a round in a state has; one that was aborted may have been sealed before, or not.
_RECORDED: dict[RoundState, list[tuple[Kind, ...]]] = {
    RoundState.OPEN: [_STEPS[:1]],
    RoundState.SEALED: [_STEPS[:2]],
    RoundState.RUNNING: [_STEPS[:2]],
    RoundState.RELEASED: [_STEPS[:3]],
    RoundState.ABORTED: [(*_STEPS[:1], _STEPS[3]), (*_STEPS[:2], _STEPS[3])],
}


def check_steps(connection: Connection, record: RoundRecord) -> None:
    """Raise `DataLoss` unless a round's state, its nonce and what its end says are those on record."""
    of_round = records.c.round_id == record.id
    query = select(records.c.kind).where(of_round, records.c.kind.in_([kind.value for kind in _STEPS]))
    found = {Kind(kind) for kind in connection.execute(query).scalars().all()}
    if found not in map(set, _RECORDED[record.state]):
        damaged(record.id, "state")
    release_time, reason = None, ""
    if Kind.ROUND_RELEASED in found:
        release_time = read_record(connection, Kind.ROUND_RELEASED, record.id).one(ReleaseItem).release_time
        published = select(records.c.publish_time).where(of_round, records.c.kind == Kind.ROUND_RELEASED.value)
        if connection.execute(published).scalar_one() < release_time:
            damaged(record.id, "release time")
    if Kind.ROUND_ABORTED in found:
        reason = read_record(connection, Kind.ROUND_ABORTED, record.id).one(AbortItem).reason
    stored_time = None if record.release_time is None else to_microseconds(record.release_time)
    if (stored_time, record.abort_reason) != (release_time, reason):
        damaged(record.id, "end")
    if Kind.ROUND_SEALED in found:
        sealed = read_record(connection, Kind.ROUND_SEALED, record.id).one(SealItem)
        if sealed.nonce != read_audit_nonce(connection, record.id):
            damaged(record.id, "nonce")


def check_digests(connection: Connection, round_id: str) -> None:
    """Raise `DataLoss` unless the kept digests of a released round's streams are those that were released."""
    items = read_record(connection, Kind.ROUND_RELEASED, round_id).each(ResultItem)
    released = {
        item.analyst: StreamDigest(item.stream.digest, item.stream.messages, item.stream.queries)
        for item in items
        if item is not None and item.stream is not None
    }
    if read_stream_digests(connection, round_id) != released:
        damaged(round_id, "streams")


def check_submissions(connection: Connection, record: RoundRecord) -> None:
    """Raise `DataLoss` unless each stored workload is the one that its receipt was signed for."""
    promise = recorded_promise(connection, record.id)
    query = select(submissions).where(submissions.c.round_id == record.id)
    for row in connection.execute(query):
        try:
            signed = _promises(row, promise) if record.terms.session is None else _signed_last(row, promise)
        except VerificationFailed:
            signed = False
        if not signed or hashlib.sha256(row.workload).digest() != row.digest:
            damaged(record.id, "workloads")


def _promises(row: Row[Any], promise: Promise) -> bool:
    receipt = read_receipt(row.receipt)
    return receipt == ReceiptPayload(
        receipt.deployment,
        row.round_id,
        row.analyst,
        workload_commitment(row.salt, row.workload),
        row.statements,
        row.queries,
        row.accept_time,
        promise,
        receipt.questions,
    )


def _signed_last(row: Row[Any], promise: Promise) -> bool:
    """Tell whether the receipt is that of the last statement that an analyst asked in a session."""
    receipt = read_session_receipt(row.receipt)
    last = (row.round_id, row.analyst, row.statements, row.accept_time, promise)
    return last == (receipt.session, receipt.analyst, receipt.sequence, receipt.time, receipt.promise)
