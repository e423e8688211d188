"""What the store says of a dataset and of an opened round, compared with what was put on record of them.

Both budgets are charged by the stored plan, to the stored account. A worker counts the table by the stored schema
and draws its noise by the plan. An analyst may ask what the stored share says. A store that was damaged or changed
must not make any of these another than was promised.
"""

from __future__ import annotations

import json

from sqlalchemy import Connection, select

from equipoise.model.rounds import MechanismPlan
from equipoise.model.times import to_microseconds
from equipoise.records.dataset_items import DataItem, DatasetItem, DeletionItem, RetirementItem
from equipoise.records.items import PlanItem, RoundItem
from equipoise.records.public_facts import PLAN, TERMS, RecordedTerms
from equipoise.records.record import Kind
from equipoise_server.rounds.records import DatasetRecord, RoundRecord
from equipoise_server.rounds.store.datasets import dataset_of, registered_cap
from equipoise_server.rounds.store.rounds import combined_with, recorded_terms
from equipoise_server.rounds.store.stored_records import damaged, read_record
from equipoise_server.storage.tables.transparency import records


def check_opened(connection: Connection, record: RoundRecord) -> None:
    """Raise `DataLoss` unless a round's terms, shares and plan are those on record, and so is its dataset."""
    read, terms = read_record(connection, Kind.ROUND_OPENED, record.id), record.terms
    public, private = read.one(RoundItem), read.one(PlanItem)
    stored = (
        terms.dataset,
        record.dataset_version,
        record.seed_commitment,
        to_microseconds(record.open_time),
        None if terms.close_time is None else to_microseconds(terms.close_time),
        record.records,
        record.universe_size,
        combined_with(terms),
        terms.shares,
        *_texts(recorded_terms(terms), record.plan),
    )
    recorded = (
        public.dataset,
        public.dataset_version,
        public.seed_commitment,
        public.open_time,
        public.close_time,
        public.records,
        public.universe_size,
        public.standing,
        private.shares,
        *_texts(private.terms, private.plan),
    )
    if stored != recorded:
        damaged(record.id, "terms")
    check_registered(connection, dataset_of(connection, record))


def check_registered(connection: Connection, dataset: DatasetRecord) -> None:
    """Raise `DataLoss` unless a version's schema, size, persons, account and analysts' cap are those on record."""
    name = dataset.name
    read = read_record(connection, Kind.DATASET_REGISTERED, "", dataset=name, place=dataset.version)
    public, private = read.one(DatasetItem), read.one(DataItem)
    stored = (
        dataset.version,
        json.loads(dataset.schema.to_json()),
        dataset.records,
        dataset.persons,
        to_microseconds(dataset.create_time),
        dataset.account,
        dataset.person or None,
        *registered_cap(connection, dataset),
    )
    facts = public.version, public.schema, public.records, public.persons, public.create_time
    registered = (*facts, private.account, private.person)
    if stored != (*registered, private.analyst_cap, private.analyst_order):
        damaged("", "registration", dataset=name)


def check_life(connection: Connection, dataset: DatasetRecord) -> None:
    """Raise `DataLoss` unless a dataset has the versions that are on record, and is retired or deleted as they say.

    `dataset`: its newest version.
    """
    of_dataset = records.c.dataset == dataset.name
    kinds = connection.execute(select(records.c.kind).where(of_dataset)).scalars().all()
    if kinds.count(Kind.DATASET_REGISTERED.value) != dataset.version:
        damaged("", "versions", dataset=dataset.name)
    retired = deleted = None
    if Kind.DATASET_RETIRED.value in kinds:
        retired = read_record(connection, Kind.DATASET_RETIRED, "", dataset=dataset.name).one(RetirementItem).time
    if Kind.DATASET_DELETED.value in kinds:
        deleted = read_record(connection, Kind.DATASET_DELETED, "", dataset=dataset.name).one(DeletionItem).time
    for time, recorded in ((dataset.retire_time, retired), (dataset.delete_time, deleted)):
        if (None if time is None else to_microseconds(time)) != recorded:
            damaged("", "state", dataset=dataset.name)


def _texts(terms: RecordedTerms, plan: MechanismPlan) -> tuple[str, str]:
    return TERMS.to_text(terms), PLAN.to_text(plan)
