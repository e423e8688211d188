"""What the steps of datasets and rounds put on record, each in the transaction that takes the step.

Every share has its items at every step, whether or not its analyst has submitted, so that the size of a record says
nothing. An item names the root of the record before it, from the round's end back to its dataset.
`docs/formats.md` describes all items.
"""

from __future__ import annotations

import json
from datetime import datetime
from hashlib import sha256

from sqlalchemy import Connection, bindparam, select

from equipoise.accounting import Cost
from equipoise.errors import DataLoss
from equipoise.model.rounds import RoundState, Share
from equipoise.model.synopsis import record_bytes
from equipoise.model.times import to_microseconds
from equipoise.records.item_parts import (
    NOTHING_CHARGED,
    RecordedSession,
    RecordedStream,
    RecordedSynopsis,
    SettledCharge,
)
from equipoise.records.items import (
    AbortItem,
    AccessItem,
    ChargeItem,
    DestructionItem,
    PlanItem,
    ReleaseItem,
    ReservationItem,
    ResultItem,
    RoundItem,
    SealItem,
    SettlementItem,
    ShareItem,
    SpendingItem,
    WorkloadItem,
)
from equipoise.records.promises import Promise, promise_of
from equipoise.records.record import Audience, Item, Kind, synopsis_digest, workload_commitment
from equipoise.records.record_layouts import make_item, read_item
from equipoise_server.ledger import charges
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.store.dataset_records import registered_digest
from equipoise_server.rounds.store.datasets import dataset_of
from equipoise_server.rounds.store.recorded_charges import charges_by_analyst, charges_of_round, spent_of_grant
from equipoise_server.rounds.store.results import read_measured, read_stream_digests, read_synopsis
from equipoise_server.rounds.store.rounds import combined_with, read_audit_nonce, recorded_terms
from equipoise_server.rounds.terms.checks import adds
from equipoise_server.storage.tables.round import datasets, submissions
from equipoise_server.storage.tables.transparency import record_items, records
from equipoise_server.transparency.record_writer import find_root, journal_head, record, record_root

# What everybody in a round may see of its opening.
_OPENINGS = (
    select(records.c.root, record_items.c.content)
    .join(record_items, records.c.position == record_items.c.record)
    .where(records.c.round_id == bindparam("round"), records.c.kind == Kind.ROUND_OPENED.value)
    .where(record_items.c.audience == Audience.ROUND.value)
)


def round_opened(connection: Connection, opened: RoundRecord, seed_fingerprint: bytes, now: datetime) -> None:
    """Record a round's opening: parameters, plan, every share, and the seed's commitment and fingerprint."""
    terms, plan = opened.terms, opened.plan
    order = select(datasets.c.analyst_order).where(datasets.c.name == opened.account)
    recorded, session = recorded_terms(terms), terms.session
    public = RoundItem(
        round_id=opened.id,
        dataset=terms.dataset,
        dataset_version=opened.dataset_version,
        dataset_root=record_root(connection, Kind.DATASET_REGISTERED, dataset=terms.dataset),
        unit=terms.unit,
        data_budget=recorded.data_budget,
        analyst_budget=recorded.analyst_budget,
        beta=terms.beta,
        mechanism=plan.mechanism,
        max_half_width=plan.max_half_width,
        max_uncertified=plan.max_uncertified,
        analyst_cost=None if terms.analyst_budget is None else plan.charged_analyst_cost,
        analyst_events=json.loads(plan.analyst_events),
        analyst_order=connection.execute(order).scalar_one() if adds(terms.unit) else None,
        seed_commitment=opened.seed_commitment,
        seed_fingerprint=seed_fingerprint,
        open_time=to_microseconds(opened.open_time),
        close_time=None if terms.close_time is None else to_microseconds(terms.close_time),
        release_grid_seconds=terms.release_grid_seconds,
        records=opened.records,
        universe_size=opened.universe_size,
        session=None
        if session is None
        else RecordedSession(session.ending, session.length, len(terms.shares), session.turn_seconds),
        accepted=terms.accepted,
        standing=combined_with(terms),
    )
    private = PlanItem(opened.id, recorded, terms.shares, plan, journal_head(connection))
    items = [make_item(public, Audience.ROUND), make_item(private, Audience.AUDITOR)]
    items += [
        _of_share(
            share,
            ShareItem.of(opened.id, share),
        )
        for share in terms.shares
    ]
    record(connection, Kind.ROUND_OPENED, items, now=now, round_id=opened.id)


def recorded_promise(connection: Connection, round_id: str) -> Promise:
    """Return what the record of a round's opening promises. Raises `DataLoss` without one."""
    row = connection.execute(_OPENINGS, {"round": round_id}).first()
    if row is None:
        raise DataLoss(f"the round {round_id} was opened without a record")
    return promise_of(row.root, read_item(row.content, RoundItem))


def record_step(connection: Connection, moved: RoundRecord, now: datetime) -> None:
    """Record the step that has brought the round to its state, after all other changes of the step."""
    match moved.state:
        case RoundState.SEALED:
            _sealed(connection, moved, now)
        case RoundState.RELEASED:
            _released(connection, moved, now)
        case RoundState.ABORTED:
            _aborted(connection, moved, now)
        case _:
            pass  # nobody may know that a round runs


def seed_read(connection: Connection, round_id: str, auditor: str, now: datetime) -> bytes:
    """Record that an auditor was given a round's sealed seed. Return the record's root, 32 bytes.

    Args:
        connection: in the transaction that hands the seed out.
        round_id: the round.
        auditor: who reads it.
        now: the time of reading.
    """
    items = [make_item(AccessItem(round_id, auditor, to_microseconds(now)), Audience.AUDITOR)]
    return record(connection, Kind.SEED_READ, items, now=now, round_id=round_id).root


def seed_destroyed(connection: Connection, round_id: str, now: datetime) -> None:
    """Record that a round's sealed seed was destroyed."""
    items = [make_item(DestructionItem(round_id, to_microseconds(now)), Audience.ROUND)]
    record(connection, Kind.SEED_DESTROYED, items, now=now, round_id=round_id)


def _sealed(connection: Connection, moved: RoundRecord, now: datetime) -> None:
    opened_root = record_root(connection, Kind.ROUND_OPENED, round_id=moved.id)
    public = SealItem(moved.id, opened_root, read_audit_nonce(connection, moved.id))
    private = ReservationItem(
        moved.id, charges_of_round(connection, moved.id), journal_head(connection), to_microseconds(now)
    )
    items = [make_item(public, Audience.ROUND), make_item(private, Audience.AUDITOR)]
    items += [
        _of_share(share, WorkloadItem(moved.id, share.analyst, _commitment(connection, moved.id, share)))
        for share in moved.terms.shares
    ]
    record(connection, Kind.ROUND_SEALED, items, now=now, round_id=moved.id)


def _released(connection: Connection, moved: RoundRecord, now: datetime) -> None:
    assert moved.release_time is not None
    cells = read_synopsis(connection, moved.id)
    sealed_root = record_root(connection, Kind.ROUND_SEALED, round_id=moved.id)
    each = record_bytes(dataset_of(connection, moved).schema.sizes)
    synopsis = RecordedSynopsis(synopsis_digest(cells), len(cells) // each) if cells else None
    measured = read_measured(connection, moved.id)
    measurement = sha256(measured).digest() if measured else None
    release_time, spent = moved.release_time, spent_of_grant(connection, moved)
    public = ReleaseItem(moved.id, sealed_root, to_microseconds(release_time), synopsis, measurement, spent)
    private = SpendingItem(
        moved.id,
        charges_of_round(connection, moved.id),
        journal_head(connection),
        to_microseconds(now),
        registered_digest(connection, moved.terms.dataset, moved.dataset_version),
    )
    streams, costs = read_stream_digests(connection, moved.id), charges_by_analyst(connection, moved)
    items = [make_item(public, Audience.ROUND), make_item(private, Audience.AUDITOR)]
    for share in moved.terms.shares:
        stream = streams.get(share.analyst)
        stream_item = None if stream is None else RecordedStream(stream.digest, stream.messages, stream.queries)
        _, cost = costs.get(share.analyst, (NOTHING_CHARGED, Cost()))
        items.append(_of_share(share, ResultItem(moved.id, share.analyst, stream_item, cost)))
    # The record enters the log when the streams open, which hides when the round was computed.
    record(connection, Kind.ROUND_RELEASED, items, now=now, publish_time=release_time, round_id=moved.id)


def _aborted(connection: Connection, moved: RoundRecord, now: datetime) -> None:
    sealed = find_root(connection, Kind.ROUND_SEALED, round_id=moved.id)
    previous = sealed or record_root(connection, Kind.ROUND_OPENED, round_id=moved.id)
    public = AbortItem(moved.id, previous, moved.abort_reason, to_microseconds(now))
    settled = tuple(
        SettledCharge(charge.account, charge.cost, charge.state)
        for charge in charges.of_round(connection, moved.id)
    )
    private = SettlementItem(moved.id, settled, journal_head(connection))
    costs = charges_by_analyst(connection, moved)
    items = [make_item(public, Audience.ROUND), make_item(private, Audience.AUDITOR)]
    for share in moved.terms.shares:
        state, cost = costs.get(share.analyst, (NOTHING_CHARGED, Cost()))
        items.append(_of_share(share, ChargeItem(moved.id, share.analyst, cost, state)))
    record(connection, Kind.ROUND_ABORTED, items, now=now, round_id=moved.id)


def _of_share(share: Share, item: object) -> Item:
    """Return an item about one analyst's part in a round."""
    return make_item(item, Audience.ANALYST, share.analyst)


def _commitment(connection: Connection, round_id: str, share: Share) -> bytes | None:
    """Return the commitment to the workload in force. One workload is read at a time, as each may be large."""
    own = (submissions.c.round_id == round_id) & (submissions.c.analyst == share.analyst)
    row = connection.execute(select(submissions.c.salt, submissions.c.workload).where(own)).first()
    return None if row is None else workload_commitment(row.salt, row.workload)
