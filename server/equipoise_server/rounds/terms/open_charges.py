"""The costs that open rounds will reserve when they are sealed. Open sessions have reserved theirs already.

On every account, the committed cost and the costs of open rounds fit under the cap together. Opening a round and
setting a cap check this; sealing a round makes its cost committed, and other steps only reduce the sum. So all open
rounds can be sealed in any order, and no analyst's account ever refuses to seal a round in which others take
part. The only exception is a cost that a repair writes off.

The function works in the transaction of the connection that it is given. Writing transactions take turns, so its
result stays true until the transaction commits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select

from equipoise.accounting import Cost
from equipoise.model.accounts import COUNTED_FOR
from equipoise.model.rounds import RoundState
from equipoise_server.ledger.account_names import holder
from equipoise_server.ledger.accounts import Account
from equipoise_server.rounds.store.rounds import IS_SESSION, plan_from_json, unit_from_json
from equipoise_server.rounds.terms.checks import charge_on
from equipoise_server.storage.tables.round import datasets, rounds, shares


def pending_costs(connection: Connection, account: str, parts: Sequence[Account]) -> dict[str, dict[str, Cost]]:
    """Return the costs that open rounds, on any dataset of an account, will reserve on some of its parts.

    Args:
        connection: of the transaction.
        account: the account.
        parts: its data account or accounts of its analysts, as many as are wanted.

    Returns:
        By the part's name, the cost of each open round at the part's order, by round, the oldest first.
    """
    of_account = select(datasets.c.name).where(datasets.c.account == account)
    is_open = rounds.c.dataset.in_(of_account) & (rounds.c.state == RoundState.OPEN.value)
    query = select(rounds.c.id, rounds.c.terms, rounds.c.plan).where(is_open & ~IS_SESSION)
    query = query.order_by(rounds.c.position)
    rows = connection.execute(query).all() if parts else []
    units = {row.id: unit_from_json(row.terms) for row in rows}
    plans = {row.id: plan_from_json(row.plan) for row in rows}
    # A round charges all of its analysts alike, and rounds are often alike: each cost at an order is computed once.
    computed: dict[tuple[Cost, str, float | None], Cost] = {}

    def cost(part: Account, round_id: str) -> Cost:
        charge, order = charge_on(part.name, plans[round_id]), part.cap.order
        alike = charge.cost, charge.events, order
        if alike not in computed:
            computed[alike] = charge.counted(order)
        return computed[alike]

    return {
        part.name: {each: cost(part, each) for each in _charging(connection, part.name, units)} for part in parts
    }


def _charging(connection: Connection, account: str, units: Mapping[str, str]) -> list[str]:
    """Return those of the given rounds (each with its unit) that will charge an account."""
    held_by = holder(account)
    if held_by is None:
        return list(units)
    unit, analyst = held_by
    shared = set(connection.execute(select(shares.c.round_id).where(shares.c.analyst == analyst)).scalars())
    return [round_id for round_id in units if unit in COUNTED_FOR[units[round_id]] and round_id in shared]
