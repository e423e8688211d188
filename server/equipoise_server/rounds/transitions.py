"""One step in the life of a round, as one transaction: state, charges and what belongs to the step."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from equipoise.model.rounds import RoundState
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise_server.ledger import charges
from equipoise_server.ledger.accounts import data_account
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.state_machine import Action, Settlement, lifecycle_of
from equipoise_server.rounds.store.results import discard
from equipoise_server.rounds.store.rounds import read_round
from equipoise_server.rounds.store.step_records import record_step
from equipoise_server.rounds.terms.checks import charges_of
from equipoise_server.storage.tables.round import rounds

# What belongs to a step: works in its transaction, at its time, and gives the round's columns that change with the
# state.
Step = Callable[[Connection, RoundRecord, datetime], Mapping[str, object]]


def take_step(connection: Connection, round_id: str, action: Action, step: Step, now: datetime) -> str:
    """Move a round on; what of it the step has changed, as text.

    Raises `NotFound`, `WrongState`, `BudgetExhausted`. What lives in memory only (a worker) is made again by
    `Lifecycle.recover` after a crash.
    """
    record = read_round(connection, round_id, locked=True)
    state, settlement = lifecycle_of(record.terms).after(record.state, action)
    columns = dict(step(connection, record, now))
    if state.ended:
        # Only auditors are to know it from now on, and the key that the server has opens nothing of theirs.
        columns["sealed_seed"] = b""
    settle(connection, record, settlement, now)
    connection.execute(rounds.update().where(rounds.c.id == round_id).values(state=state.value, **columns))
    moved = read_round(connection, round_id)
    record_step(connection, moved, now)
    return _changes_to_json(moved)


def discarded(reason: str, connection: Connection, record: RoundRecord) -> Mapping[str, object]:
    """What was computed for a round that ends without answers is not kept."""
    discard(connection, record.id)
    return {"abort_reason": reason}


def settle(connection: Connection, record: RoundRecord, settlement: Settlement, now: datetime) -> None:
    """Do to a round's charges what a step does. Raises `BudgetExhausted`."""
    match settlement:
        case Settlement.RESERVE:
            charges.reserve(connection, record.id, charges_of(record.terms, record.plan), now)
        case Settlement.START:
            charges.start(connection, record.id, data_account(record.terms.dataset), now)
        case Settlement.SPEND:
            charges.spend(connection, record.id, now)
        case Settlement.RELEASE:
            charges.release(connection, record.id, now)
        case Settlement.NONE:
            pass


def _changes_to_json(record: RoundRecord) -> str:
    """What of a round changes during its life; the rest is read from the store again."""
    release = record.release_time
    fields = {
        "round": record.id,
        "state": record.state.value,
        "release_time": None if release is None else to_microseconds(release),
        "abort_reason": record.abort_reason,
    }
    return json.dumps(fields, sort_keys=True)


def round_as_moved(connection: Connection, text: str) -> RoundRecord:
    """The round as it was after the step of which this text was kept."""
    fields: dict[str, Any] = json.loads(text)
    release = fields["release_time"]
    return replace(
        read_round(connection, fields["round"]),
        state=RoundState(fields["state"]),
        release_time=None if release is None else from_microseconds(release),
        abort_reason=fields["abort_reason"],
    )
