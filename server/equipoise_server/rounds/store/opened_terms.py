"""What the store says of a dataset and of an opened round, compared with what was put on record of them.

Both budgets are charged by the stored plan, to the stored account. A worker counts the table by the stored schema
and draws its noise by the plan. An analyst may ask what the stored share says. A store that was damaged or changed
must not make any of these another than was promised.
"""

from __future__ import annotations

import json

from sqlalchemy import Connection

from equipoise.model.rounds import MechanismPlan
from equipoise.model.times import to_microseconds
from equipoise.records.items import DataItem, DatasetItem, PlanItem, RoundItem
from equipoise.records.public_facts import PLAN, TERMS, RecordedTerms
from equipoise.records.record import Kind
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.store.rounds import read_analyst_cap, read_dataset, recorded_terms
from equipoise_server.rounds.store.stored_records import damaged, read_record


def check_opened(connection: Connection, record: RoundRecord) -> None:
    """Raise `DataLoss` unless a round's terms, shares and plan are those on record, and so is its dataset."""
    read, terms = read_record(connection, Kind.ROUND_OPENED, record.id), record.terms
    public, private = read.one(RoundItem), read.one(PlanItem)
    stored = (
        terms.dataset,
        record.seed_commitment,
        to_microseconds(record.open_time),
        None if terms.close_time is None else to_microseconds(terms.close_time),
        record.records,
        record.universe_size,
        terms.shares,
        *_texts(recorded_terms(terms), record.plan),
    )
    recorded = (
        public.dataset,
        public.seed_commitment,
        public.open_time,
        public.close_time,
        public.records,
        public.universe_size,
        private.shares,
        *_texts(private.terms, private.plan),
    )
    if stored != recorded:
        damaged(record.id, "terms")
    check_registered(connection, terms.dataset)


def check_registered(connection: Connection, name: str) -> None:
    """Raise `DataLoss` unless a dataset's schema, size, persons, account and analysts' cap are those on record."""
    dataset = read_dataset(connection, name)
    read = read_record(connection, Kind.DATASET_REGISTERED, "", dataset=name)
    public, private = read.one(DatasetItem), read.one(DataItem)
    stored = (
        json.loads(dataset.schema.to_json()),
        dataset.records,
        dataset.persons,
        to_microseconds(dataset.create_time),
        dataset.account,
        dataset.person or None,
        *read_analyst_cap(connection, name),
    )
    facts = public.schema, public.records, public.persons, public.create_time
    registered = (*facts, private.account, private.person)
    if stored != (*registered, private.analyst_cap, private.analyst_order):
        damaged("", "registration", dataset=name)


def _texts(terms: RecordedTerms, plan: MechanismPlan) -> tuple[str, str]:
    return TERMS.to_text(terms), PLAN.to_text(plan)
