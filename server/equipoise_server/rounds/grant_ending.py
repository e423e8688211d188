"""When a grant is released, the data account counts what was spent of it instead of all that it allowed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction

from sqlalchemy import Connection, select

from equipoise.accounting import RHO_UNIT, Cost, ZcdpEvent, events_from_json, events_to_json
from equipoise.errors import DataLoss
from equipoise.model.rounds import GRANT
from equipoise.queries.grant_account import GrantAccount, Wanted
from equipoise.wire.outline import asked_from_bytes
from equipoise_server.ledger import charges
from equipoise_server.ledger.account_names import data_account
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.store.datasets import dataset_of
from equipoise_server.rounds.store.paid_statements import reads_wanted
from equipoise_server.storage.tables.round import submissions
from equipoise_server.storage.tables.session import asked, sessions


def sealed_cost(connection: Connection, record: RoundRecord) -> int | None:
    """Return what a grant's sealed statements come to, in units of 10^-12 of rho; None where everything counts.

    In doubt everything counts: where statements that were answered are missing. For a round that is no grant it is
    None, too.

    Args:
        connection: to the store. Sealed statements never change, so it needs no transaction that writes: 100,000 of
            them take a minute, in which no other analyst could be answered.
        record: the round.

    Raises:
        BudgetExhausted: the statements come to more than the grant allows.
    """
    if record.terms.mechanism != GRANT:
        return None
    workloads = connection.execute(
        select(submissions.c.workload).where(submissions.c.round_id == record.id)
    ).scalars()
    statements = [statement for workload in workloads for statement in asked_from_bytes(workload)[0]]
    answered = connection.execute(select(sessions.c.answered).where(sessions.c.round_id == record.id)).scalar_one()
    if len(statements) != answered:
        return None
    return spent_by(
        record.plan.data_cost.rho, map(reads_wanted(record, dataset_of(connection, record)), statements)
    )


def return_unspent(connection: Connection, record: RoundRecord, spent: int | None, now: datetime) -> None:
    """Reduce a grant's charge to what its sealed statements come to; do nothing for any other round.

    Args:
        connection: in the transaction that releases the round.
        record: the round, before its release.
        spent: what `sealed_cost` returned.
        now: of the release.

    Raises:
        DataLoss: the statements do not cost what was counted while they were answered.
    """
    if spent is None:
        return
    told = connection.execute(select(asked.c.cost).where(asked.c.round_id == record.id)).scalars()
    if sum(told) != spent:
        raise DataLoss(f"the statements of the grant {record.id} do not cost what was counted")
    if spent < record.plan.data_cost.rho:
        charges.reduce(connection, record.id, charge_of_spent(record, spent), now)


def spent_by(total: int, statements: Iterable[Wanted]) -> int:
    """Return what statements come to together, in units of 10^-12 of rho. Raises `BudgetExhausted` above `total`.

    Args:
        total: what the grant allows.
        statements: what is asked, in the order in which they were answered.
    """
    account = GrantAccount(total)
    for wanted in statements:
        account.pay(wanted)
    return account.filter.spent


def charge_of_spent(record: RoundRecord, spent: int) -> charges.Charge:
    """Return the charge on the data account for what statements came to, in place of all that a grant allows.

    Args:
        record: the grant.
        spent: what its statements came to, in units of 10^-12 of rho. For nothing the charge has no events.
    """
    (planned,) = events_from_json(record.plan.data_events)
    parts = [ZcdpEvent(planned.name, Fraction(spent, RHO_UNIT))] if spent else []
    return charges.Charge(data_account(record.account), Cost(rho=spent), events_to_json(GRANT, parts))
