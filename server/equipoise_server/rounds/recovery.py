"""Repairs a store that was restored from an older copy, as the runbook says, while no server runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from equipoise.model.identities import Role
from equipoise.model.rounds import RoundState
from equipoise_server.ledger import charges
from equipoise_server.ledger.account_names import analyst_account, data_account
from equipoise_server.ledger.accounts import open_account
from equipoise_server.ledger.adjustments import WrittenOff, write_off
from equipoise_server.ledger.caps import Cap, Composition
from equipoise_server.ledger.guard_comparison import Finding
from equipoise_server.ledger.rollback_guard import Guard
from equipoise_server.rounds.store.results import discard
from equipoise_server.rounds.store.rounds import read_round
from equipoise_server.rounds.store.step_records import record_step
from equipoise_server.rounds.terms.checks import UNITS
from equipoise_server.storage.operations import committing
from equipoise_server.storage.store import Store
from equipoise_server.storage.tables.identity import identities
from equipoise_server.storage.tables.round import datasets, rounds
from equipoise_server.transparency.keys import PublicKey, replace_log_keys
from equipoise_server.transparency.log_recovery import go_on_beyond
from equipoise_server.transparency.signing import Signer

RESTORED = "the server was restored from a backup"


@dataclass(frozen=True)
class Restored:
    """The outcome of a repair: the finding, the losses written off by account, and the ids of the aborted rounds.

    `lost_records`: the number of log entries that stand for lost records. `new_key`: the log's only key from now
    on; None where the keys stay.
    """

    finding: Finding
    written_off: list[WrittenOff]
    aborted: list[str]
    lost_records: int = 0
    new_key: PublicKey | None = None


def write_off_losses(store: Store, guard: Guard, signer: Signer, now: datetime) -> Restored:
    """Mark as spent what the store may have forgotten, end every round, and set the guard.

    Every round that has not ended is aborted, and its charges are spent: the round may have run in the lost part of
    the history, and its seed must never be used for another set of workloads. The log continues beyond every size
    that anybody can have been shown (`transparency.log_recovery`).

    After a crash before the commit nothing was done, and servers still refuse the store. After a crash that follows
    the commit, the journal says that the snapshot was written off, so the next start accepts the store and sets the
    guard.

    Args:
        store: the restored store.
        guard: the guard, whose snapshot is newer than the store, or is missing.
        signer: makes a new log key where the guard's snapshot is missing.
        now: the time of the repair.

    Returns:
        What was found and done. A store that contains the snapshot is left as it is.
    """
    snapshot = guard.read()
    new_key = signer.make_key(now) if snapshot is None else None
    with committing(store, "write-off") as connection:
        finding = guard.compare(connection, snapshot)
        done = Restored(finding, [], [])
        if finding is not Finding.CONTAINED:
            if finding is Finding.MISSING:
                _open_accounts(connection, now)
            aborted = _end_rounds(connection, now)
            written_off = write_off(connection, snapshot, finding, now)
            lost_records = 0 if snapshot is None else go_on_beyond(connection, snapshot.log, now)
            if new_key is not None:
                replace_log_keys(connection, new_key)
            done = Restored(finding, written_off, aborted, lost_records, new_key)
    guard.set(store)
    if new_key is not None and done.new_key is None:
        signer.path(new_key).unlink()
    with store.read() as connection:
        signer.remove_retired(connection)
    return done


def _open_accounts(connection: Connection, now: datetime) -> None:
    """Open every account on which the lost part may have spent, so that the repair leaves no budget there either.

    Accounts under parallel composition are left out: what was spent there takes nothing from later rounds.
    """
    analysts = select(identities.c.name).where(identities.c.role == Role.ANALYST.value).order_by(identities.c.name)
    names = list(connection.execute(analysts).scalars())
    first = select(datasets).where(datasets.c.name == datasets.c.account).order_by(datasets.c.name)
    for row in connection.execute(first).all():
        cap = Cap(row.analyst_epsilon, row.analyst_delta, row.analyst_order)
        for unit in (unit for unit, composition in UNITS.items() if composition is Composition.SEQUENTIAL):
            for name in names:
                part = analyst_account(row.account, unit, name)
                open_account(
                    connection, now, part, account=row.account, composition=Composition.SEQUENTIAL, cap=cap
                )


def _end_rounds(connection: Connection, now: datetime) -> list[str]:
    ended = [state.value for state in RoundState if state.ended]
    query = select(rounds.c.id).where(rounds.c.state.not_in(ended)).order_by(rounds.c.position)
    ids = list(connection.execute(query).scalars())
    for round_id in ids:
        record = read_round(connection, round_id)
        if record.state is RoundState.SEALED and record.terms.session is None:
            # It may have run in the lost part: without this entry an auditor would find charges spent for nothing.
            charges.start(connection, round_id, data_account(record.account), now)
        charges.spend(connection, round_id, now)
        discard(connection, round_id)
        changed = {"state": RoundState.ABORTED.value, "abort_reason": RESTORED, "sealed_seed": b""}
        connection.execute(rounds.update().where(rounds.c.id == round_id).values(changed))
        record_step(connection, read_round(connection, round_id), now)
    return ids
