"""Takes one step of a round in one transaction: state, charges, and the step's own changes."""

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
from equipoise_server.ledger.account_names import data_account
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.state_machine import Action, Settlement, lifecycle_of
from equipoise_server.rounds.store.results import discard
from equipoise_server.rounds.store.rounds import read_round
from equipoise_server.rounds.store.step_records import record_step
from equipoise_server.rounds.terms.checks import charges_of
from equipoise_server.storage.tables.round import rounds

# A step's own changes: a function that works in the step's transaction, at its time, and returns the columns of the
# round that change with the state.
Step = Callable[[Connection, RoundRecord, datetime], Mapping[str, object]]


def take_step(connection: Connection, round_id: str, action: Action, step: Step, now: datetime) -> str:
    """Move a round to its next state, and return the changed facts as text, which `round_as_moved` reads.

    The transaction covers the store only: after a crash `Lifecycle.recover` starts the workers again.

    Raises:
        NotFound: there is no such round.
        WrongState: the round's state does not allow the action.
        BudgetExhausted: an account has no room for the round.
    """
    record = read_round(connection, round_id, locked=True)
    state, settlement = lifecycle_of(record.terms).after(record.state, action)
    columns = dict(step(connection, record, now))
    if state.ended:
        # Only auditors may know the seed from now on. The server's key does not open the auditors' copies.
        columns["sealed_seed"] = b""
    settle(connection, record, settlement, now)
    connection.execute(rounds.update().where(rounds.c.id == round_id).values(state=state.value, **columns))
    moved = read_round(connection, round_id)
    record_step(connection, moved, now)
    return _changes_to_json(moved)


def discarded(reason: str, connection: Connection, record: RoundRecord) -> Mapping[str, object]:
    """Remove what was computed for a round that ends without answers, and return the columns that change."""
    discard(connection, record.id)
    return {"abort_reason": reason}


def settle(connection: Connection, record: RoundRecord, settlement: Settlement, now: datetime) -> None:
    """Apply a settlement to a round's charges. Raises `BudgetExhausted`."""
    match settlement:
        case Settlement.RESERVE:
            charges.reserve(connection, record.id, charges_of(record.account, record.terms, record.plan), now)
        case Settlement.START:
            charges.start(connection, record.id, data_account(record.account), now)
        case Settlement.SPEND:
            charges.spend(connection, record.id, now)
        case Settlement.RELEASE:
            charges.release(connection, record.id, now)
        case Settlement.NONE:
            pass


def _changes_to_json(record: RoundRecord) -> str:
    """Return those facts of a round that steps change; the other facts are read from the store again."""
    release = record.release_time
    fields = {
        "round": record.id,
        "state": record.state.value,
        "release_time": None if release is None else to_microseconds(release),
        "abort_reason": record.abort_reason,
    }
    return json.dumps(fields, sort_keys=True)


def round_as_moved(connection: Connection, text: str) -> RoundRecord:
    """Return the round as it was after the step whose text (of `take_step`) this is."""
    fields: dict[str, Any] = json.loads(text)
    release = fields["release_time"]
    return replace(
        read_round(connection, fields["round"]),
        state=RoundState(fields["state"]),
        release_time=None if release is None else from_microseconds(release),
        abort_reason=fields["abort_reason"],
    )
