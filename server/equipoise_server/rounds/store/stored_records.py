"""Records as the store keeps them, read with all that they commit to."""

from __future__ import annotations

from typing import NoReturn

import structlog
from sqlalchemy import Connection, select

from equipoise.errors import DataLoss, VerificationFailed
from equipoise.records.opened_records import ReadRecord, open_record
from equipoise.records.record import Kind
from equipoise_server.storage.tables.transparency import records
from equipoise_server.transparency.record_writer import stored_openings

log = structlog.get_logger(__name__)


def read_record(
    connection: Connection, kind: Kind, round_id: str, *, dataset: str = "", place: int = 1
) -> ReadRecord:
    """Return a record of a kind, of a round or a dataset, whose items are those that its leaf commits to.

    `place`: which one of a dataset's, from 1. A round has one of each kind. Raises `DataLoss` for any other.

    Args:
        connection: to the store.
        kind: of the record.
        round_id: the round; empty: the record is of a dataset.
        dataset: its name, where the record is of one.
        place: which one of a dataset's, from 1.
    """
    of_subject = records.c.round_id == round_id if round_id else records.c.dataset == dataset
    query = select(records.c.leaf, records.c.position).where(of_subject, records.c.kind == kind.value)
    row = connection.execute(query.order_by(records.c.position).offset(place - 1).limit(1)).first()
    if row is None:
        damaged(round_id, "records", dataset=dataset)
    try:
        return open_record(row.leaf, *stored_openings(connection, row.position), f"the {kind} record")
    except VerificationFailed:
        damaged(round_id, "records", dataset=dataset)


def damaged(round_id: str, what: str, *, dataset: str = "") -> NoReturn:
    """Log and raise `DataLoss`: `what` is stored of a round, or of a dataset, is not what is on record.

    Args:
        round_id: the round; empty: it is of a dataset.
        what: is damaged, in the plural.
        dataset: its name, where it is of one.
    """
    log.error("damaged", round_id=round_id, dataset=dataset, what=what)
    subject = f"the round {round_id}" if round_id else f"the dataset {dataset!a}"
    raise DataLoss(f"the {what} of {subject}: what is stored is not what is on record")
