"""What the steps of datasets and rounds put on record, each in the transaction that takes the step.

Every share has its items at every step, whether or not its analyst has submitted, so that the size of a record says
nothing. An item names the root of the record before it, from the round's end back to its dataset. Rounds that were
opened before there were records have none of any step; `docs/formats.md` describes all items.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from equipoise.accounting import Cost
from equipoise.items import NOTHING_CHARGED
from equipoise.records import (
    CELL_BYTES,
    SESSION_VERSION,
    VERSION,
    Audience,
    Item,
    Kind,
    make_item,
    synopsis_digest,
    workload_commitment,
)
from equipoise.times import to_microseconds
from equipoise_server.ledger import charges, journal
from equipoise_server.ledger.accounts import analyst_account
from equipoise_server.mechanisms.interface import Share
from equipoise_server.rounds.records import DatasetRecord, RoundRecord
from equipoise_server.rounds.rows import plan_to_json, read_audit_nonce, terms_to_json
from equipoise_server.rounds.runs import read_stream_digests, read_synopsis
from equipoise_server.rounds.states import RoundState
from equipoise_server.rounds.terms import adds
from equipoise_server.storage.tables import datasets, record_items, records, submissions
from equipoise_server.transparency.recording import find_root, record, record_root


def dataset_registered(connection: Connection, dataset: DatasetRecord, digest: bytes, now: datetime) -> None:
    """The table: what is public of it, and for auditors the digest of what it holds."""
    public = {
        "dataset": dataset.name,
        "schema": json.loads(dataset.schema.to_json()),
        "records": dataset.records,
        "create_time": to_microseconds(dataset.create_time),
    }
    private = {"dataset": dataset.name, "digest": digest.hex(), "journal": _journal_head(connection)}
    items = [make_item("dataset", Audience.ROUND, public), make_item("data", Audience.AUDITOR, private)]
    record(connection, Kind.DATASET_REGISTERED, items, now=now, dataset=dataset.name)


def registered_digest(connection: Connection, dataset: str) -> bytes | None:
    """The digest of a dataset's table as it was registered; None where that was before there were records."""
    query = (
        select(record_items.c.content)
        .join(records, records.c.position == record_items.c.record)
        .where(records.c.dataset == dataset, records.c.kind == Kind.DATASET_REGISTERED.value)
        .where(record_items.c.audience == Audience.AUDITOR.value)
    )
    content = connection.execute(query).scalar_one_or_none()
    return None if content is None else bytes.fromhex(json.loads(content)["digest"])


def round_opened(connection: Connection, opened: RoundRecord, now: datetime) -> None:
    """The public parameters, the plan, and each analyst's share, with the commitment to the seed."""
    terms, plan = opened.terms, opened.plan
    order = select(datasets.c.analyst_order).where(datasets.c.name == terms.dataset)
    public = {
        "round": opened.id,
        "dataset": terms.dataset,
        "dataset_root": record_root(connection, Kind.DATASET_REGISTERED, dataset=terms.dataset).hex(),
        "unit": terms.unit,
        "data_budget": _floats(asdict(terms.data_budget)),
        "analyst_budget": None if terms.analyst_budget is None else _floats(asdict(terms.analyst_budget)),
        "beta": float(terms.beta),
        "mechanism": plan.mechanism,
        "promised_error": float(plan.promised_error),
        "uncertified_at_most": plan.uncertified_at_most,
        "analyst_cost": None if terms.analyst_budget is None else asdict(plan.charged_analyst_cost),
        "analyst_events": json.loads(plan.analyst_events),
        "analyst_order": connection.execute(order).scalar_one() if adds(terms.unit) else None,
        "seed_commitment": opened.seed_commitment.hex(),
        "open_time": to_microseconds(opened.open_time),
        "close_time": None if terms.close_time is None else to_microseconds(terms.close_time),
        "release_grid_seconds": terms.release_grid_seconds,
        "records": opened.records,
        "universe_size": opened.universe_size,
    }
    version = VERSION
    if terms.session is not None:
        version = SESSION_VERSION
        public["session"] = asdict(terms.session) | {"shares": len(terms.shares)}
    private = {
        "round": opened.id,
        "terms": json.loads(terms_to_json(terms)) | {"shares": [asdict(share) for share in terms.shares]},
        "plan": json.loads(plan_to_json(plan)),
        "journal": _journal_head(connection),
    }
    items = [
        make_item("round", Audience.ROUND, public, version=version),
        make_item("plan", Audience.AUDITOR, private),
    ]
    items += [_of_share("share", opened.id, share, **_share_numbers(share)) for share in terms.shares]
    record(connection, Kind.ROUND_OPENED, items, now=now, round_id=opened.id)


def step_taken(connection: Connection, moved: RoundRecord, now: datetime) -> None:
    """The step that has brought the round to its state, after everything else that belongs to the step."""
    if find_root(connection, Kind.ROUND_OPENED, round_id=moved.id) is None:
        return
    match moved.state:
        case RoundState.SEALED:
            _sealed(connection, moved, now)
        case RoundState.RELEASED:
            _released(connection, moved, now)
        case RoundState.ABORTED:
            _aborted(connection, moved, now)
        case _:
            pass  # that a round runs is nobody's to know


def seed_read(connection: Connection, round_id: str, auditor: str, now: datetime) -> None:
    """That an auditor was given a round's sealed seed."""
    fields = {"round": round_id, "auditor": auditor, "time": to_microseconds(now)}
    items = [make_item("access", Audience.AUDITOR, fields)]
    record(connection, Kind.SEED_READ, items, now=now, round_id=round_id)


def seed_destroyed(connection: Connection, round_id: str, now: datetime) -> None:
    """That nobody can be given a round's seed any more."""
    items = [make_item("destruction", Audience.ROUND, {"round": round_id, "time": to_microseconds(now)})]
    record(connection, Kind.SEED_DESTROYED, items, now=now, round_id=round_id)


def _sealed(connection: Connection, moved: RoundRecord, now: datetime) -> None:
    nonce = read_audit_nonce(connection, moved.id)
    public = {
        "round": moved.id,
        "opened_root": record_root(connection, Kind.ROUND_OPENED, round_id=moved.id).hex(),
        "nonce": None if nonce is None else nonce.hex(),
    }
    private = {
        "round": moved.id,
        "charges": _costs(connection, moved.id),
        "journal": _journal_head(connection),
        "seal_time": to_microseconds(now),
    }
    items = [make_item("seal", Audience.ROUND, public), make_item("reservation", Audience.AUDITOR, private)]
    items += [
        _of_share("workload", moved.id, share, commitment=_commitment(connection, moved.id, share))
        for share in moved.terms.shares
    ]
    record(connection, Kind.ROUND_SEALED, items, now=now, round_id=moved.id)


def _released(connection: Connection, moved: RoundRecord, now: datetime) -> None:
    assert moved.release_time is not None
    cells = read_synopsis(connection, moved.id)
    synopsis = {"digest": synopsis_digest(cells).hex(), "records": len(cells) // CELL_BYTES} if cells else None
    digest = registered_digest(connection, moved.terms.dataset)
    assert digest is not None
    public = {
        "round": moved.id,
        "sealed_root": record_root(connection, Kind.ROUND_SEALED, round_id=moved.id).hex(),
        "release_time": to_microseconds(moved.release_time),
        "synopsis": synopsis,
    }
    private = {
        "round": moved.id,
        "charges": _costs(connection, moved.id),
        "journal": _journal_head(connection),
        "commit_time": to_microseconds(now),
        "data_digest": digest.hex(),
    }
    streams, costs = read_stream_digests(connection, moved.id), _by_analyst(connection, moved)
    items = [make_item("release", Audience.ROUND, public), make_item("spending", Audience.AUDITOR, private)]
    for share in moved.terms.shares:
        stream = streams.get(share.analyst)
        told = None if stream is None else asdict(stream) | {"digest": stream.digest.hex()}
        _, cost = costs.get(share.analyst, (NOTHING_CHARGED, Cost()))
        items.append(_of_share("result", moved.id, share, stream=told, charge=asdict(cost)))
    # Computed whenever it was, it enters the log when the streams open.
    release_time = moved.release_time
    record(connection, Kind.ROUND_RELEASED, items, now=now, publish_time=release_time, round_id=moved.id)


def _aborted(connection: Connection, moved: RoundRecord, now: datetime) -> None:
    sealed = find_root(connection, Kind.ROUND_SEALED, round_id=moved.id)
    previous = sealed or record_root(connection, Kind.ROUND_OPENED, round_id=moved.id)
    public = {
        "round": moved.id,
        "previous_root": previous.hex(),
        "reason": moved.abort_reason,
        "abort_time": to_microseconds(now),
    }
    settled = [
        {"account": held.account, "cost": asdict(held.cost), "state": held.state}
        for held in charges.of_round(connection, moved.id)
    ]
    private = {"round": moved.id, "charges": settled, "journal": _journal_head(connection)}
    costs = _by_analyst(connection, moved)
    items = [make_item("abort", Audience.ROUND, public), make_item("settlement", Audience.AUDITOR, private)]
    for share in moved.terms.shares:
        state, cost = costs.get(share.analyst, (NOTHING_CHARGED, Cost()))
        items.append(_of_share("charge", moved.id, share, charge=asdict(cost), state=state))
    record(connection, Kind.ROUND_ABORTED, items, now=now, round_id=moved.id)


def _of_share(name: str, round_id: str, share: Share, **fields: object) -> Item:
    """An item about one analyst's part in a round."""
    told = {"round": round_id, "analyst": share.analyst, **fields}
    return make_item(name, Audience.ANALYST, told, share.analyst)


def _share_numbers(share: Share) -> dict[str, int]:
    return {name: number for name, number in asdict(share).items() if name != "analyst"}


def _commitment(connection: Connection, round_id: str, share: Share) -> str | None:
    """Of the workload that is in force. One at a time: a workload may be large."""
    mine = (submissions.c.round_id == round_id) & (submissions.c.analyst == share.analyst)
    row = connection.execute(select(submissions.c.salt, submissions.c.workload).where(mine)).first()
    return None if row is None else workload_commitment(row.salt, row.workload).hex()


def _costs(connection: Connection, round_id: str) -> Sequence[dict[str, Any]]:
    return [{"account": held.account, "cost": asdict(held.cost)} for held in charges.of_round(connection, round_id)]


def _by_analyst(connection: Connection, moved: RoundRecord) -> dict[str, tuple[str, Cost]]:
    """The state and the amount of each analyst's own charge, where there is one."""
    held = {each.account: (each.state, each.cost) for each in charges.of_round(connection, moved.id)}
    accounts = {
        share.analyst: analyst_account(moved.terms.dataset, moved.terms.unit, share.analyst)
        for share in moved.terms.shares
    }
    return {analyst: held[account] for analyst, account in accounts.items() if account in held}


def _journal_head(connection: Connection) -> dict[str, object]:
    head = journal.head(connection)
    return {"sequence": head.sequence, "digest": head.digest.hex()}


def _floats(fields: dict[str, Any]) -> dict[str, float]:
    """Whole numbers, too, so that a number has one spelling."""
    return {name: float(number) for name, number in fields.items()}
