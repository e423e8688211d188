"""The charges of rounds on accounts: reserved before data are read, then spent, or released if no data were read.

Both reserved and spent charges are committed: they count against the cap. In doubt means spent. Every function
works in the transaction of the connection it is given and commits nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, replace
from datetime import datetime
from operator import gt
from typing import Any

from sqlalchemy import Connection, Row, select

from equipoise.accounting import Cost, charge_at, charge_of, events_from_json
from equipoise.errors import DataLoss
from equipoise_server.ledger import journal
from equipoise_server.ledger.accounts import Account, account, change, columns, total_with
from equipoise_server.ledger.caps import combined
from equipoise_server.ledger.write_offs import written_off
from equipoise_server.storage.tables.ledger import accounts
from equipoise_server.storage.tables.ledger import charges as charges_table


@dataclass(frozen=True)
class Charge:
    """What one round costs one account.

    `events`: the privacy events that make up the cost, as `accounting.events_to_json` writes them. `cost`: rho and
    an (epsilon, delta) pair; in a stored charge, the amounts in which its account counts. `state`: "reserved",
    "spent" or "released".
    """

    account: str
    cost: Cost
    events: str
    state: str = "reserved"

    def counted(self, order: float | None) -> Cost:
        """Return the amount at a Renyi order, computed from the events; `cost` where the order is None.

        Raises:
            DataLoss: the events do not add up to `cost`, so that they could count too little.
        """
        if order is None:
            return self.cost
        parts = events_from_json(self.events)
        if charge_of(parts) != self.cost:
            raise DataLoss(f"the parts of the charge on {self.account} do not make up its amount")
        return charge_at(parts, order)


def reserve(connection: Connection, round_id: str, asked: Sequence[Charge], time: datetime) -> None:
    """Reserve a round's charges on all of its accounts, or on none.

    After a crash before the commit nothing is reserved, and no data were read. After a crash behind the commit all
    charges are reserved, and count until they are spent or released.

    Args:
        connection: The transaction in which the round is sealed.
        round_id: The round.
        asked: One charge an account: of the data's account, and of every analyst with a share.
        time: The time of the journal's entries.

    Raises:
        BudgetExhausted: a charge does not fit on its account.
        NotFound: there is no such account.
    """
    # Always in the order of the names, so that two rounds never wait for each other's accounts.
    for wanted in sorted(asked, key=lambda charge: charge.account):
        # An account's order never changes, and neither does what the charge counts on it.
        order = account(connection, wanted.account).cap.order
        charge = replace(wanted, cost=wanted.counted(order))
        # The update holds only if nobody changed the account since it was read; otherwise read it again.
        while not _commit(connection, account(connection, charge.account), charge.cost):
            pass
        connection.execute(
            charges_table.insert().values(
                round_id=round_id,
                account=charge.account,
                state="reserved",
                rho=charge.cost.rho,
                epsilon=charge.cost.epsilon,
                delta=charge.cost.delta,
                divergence=charge.cost.divergence,
                events=charge.events,
            )
        )
        _record(connection, time, "reserve", round_id, charge)


def start(connection: Connection, round_id: str, data_account_name: str, time: datetime) -> None:
    """Journal that a round may read data from now on: its charges can no longer be released.

    This step has its own entry so that the rollback guard can refuse a copy of the store from before it.

    Args:
        connection: in the transaction of the step.
        round_id: the round or session.
        data_account_name: the account of the people in its table.
        time: of the step.
    """
    events = json.dumps({"round": round_id})
    journal.append(
        connection, time, "run", account=data_account_name, cost=Cost(), events=events, round_id=round_id
    )


def spend(connection: Connection, round_id: str, time: datetime) -> None:
    """Spend everything that a round has reserved. Spending is never refused, as a reservation fits already.

    After a crash before the commit the charges are still reserved, which counts the same against the cap.
    """
    for charge in _reserved(connection, round_id):
        standing = account(connection, charge.account)
        total = combined([standing.spent, charge.cost], standing.composition, standing.cap)
        _settle(connection, round_id, charge, "spent")
        change(connection, standing.name, columns("spent", total))
        _record(connection, time, "spend", round_id, charge)


def release(connection: Connection, round_id: str, time: datetime) -> None:
    """Release everything that a round has reserved; only for a round that has read no data.

    After a crash before the commit the charges are still reserved: too much is counted, never too little.
    """
    for charge in _reserved(connection, round_id):
        standing = account(connection, charge.account)
        _settle(connection, round_id, charge, "released")
        _recount(connection, standing)
        _record(connection, time, "release", round_id, charge)


def reduce(connection: Connection, round_id: str, smaller: Charge, time: datetime) -> None:
    """Reduce what a round has reserved on one account to what it has spent of it, once it can spend no more.

    Only a privacy filter allows this (`accounting.privacy_filter`): the rest was never spent, but data were read.
    After a crash before the commit all is still reserved. Raises `DataLoss` where less is reserved than is spent.

    Args:
        connection: The transaction in which the round is released.
        round_id: The round.
        smaller: What it has spent on that account.
        time: The time of the journal's entry.
    """
    standing = account(connection, smaller.account)
    charge = replace(smaller, cost=smaller.counted(standing.cap.order))
    reserved = [each.cost for each in _reserved(connection, round_id) if each.account == standing.name]
    if len(reserved) != 1 or any(map(gt, astuple(charge.cost), astuple(reserved[0]))):
        raise DataLoss(f"the round {round_id} has spent more on {charge.account} than was reserved for it")
    _settle(connection, round_id, charge, "reserved")
    _recount(connection, standing)
    _record(connection, time, "reduce", round_id, charge)


def _recount(connection: Connection, standing: Account) -> None:
    # Sum up what is left instead of subtracting: a sum that was cut to `MAX_AMOUNT` less a charge is too small.
    left = combined(live_costs(connection, standing), standing.composition, standing.cap)
    change(connection, standing.name, columns("committed", left))


def live_costs(connection: Connection, standing: Account, *, spent_only: bool = False) -> list[Cost]:
    """Return every cost that counts on an account: of charges that were not released, and of write-offs.

    Args:
        connection: Reads the store.
        standing: The account.
        spent_only: Leaves out what is reserved.
    """
    states = ("spent",) if spent_only else ("spent", "reserved")
    rows = connection.execute(
        select(charges_table).where(charges_table.c.account == standing.name, charges_table.c.state.in_(states))
    )
    return [*(_cost(row) for row in rows), *written_off(connection, standing.name)]


def of_round(connection: Connection, round_id: str) -> list[Charge]:
    """Return a round's charges in the order of the accounts' names; none before the round is sealed."""
    query = select(charges_table).where(charges_table.c.round_id == round_id).order_by(charges_table.c.account)
    return [_charge(row) for row in connection.execute(query)]


def all_charges(connection: Connection) -> dict[str, dict[str, Charge]]:
    """Return every charge, by account and round."""
    charges_of: dict[str, dict[str, Charge]] = {}
    for row in connection.execute(select(charges_table)):
        charges_of.setdefault(row.account, {})[row.round_id] = _charge(row)
    return charges_of


def _commit(connection: Connection, standing: Account, cost: Cost) -> bool:
    """Commit a cost by one conditional update; return whether the account was still as `standing` says.

    The table's CHECK also refuses an amount that exceeds the limits.
    """
    total = total_with(standing, cost)
    changed = connection.execute(
        accounts.update()
        .where(
            accounts.c.name == standing.name,
            *(accounts.c[name] == value for name, value in columns("committed", standing.committed).items()),
            *(accounts.c[name] == value for name, value in columns("limit", standing.limit).items()),
        )
        .values(columns("committed", total))
    )
    return changed.rowcount == 1


def _record(connection: Connection, time: datetime, action: str, round_id: str, charge: Charge) -> None:
    journal.append(
        connection,
        time,
        action,
        account=charge.account,
        cost=charge.cost,
        events=charge.events,
        round_id=round_id,
    )


def _reserved(connection: Connection, round_id: str) -> list[Charge]:
    rows = connection.execute(
        select(charges_table)
        .where(charges_table.c.round_id == round_id, charges_table.c.state == "reserved")
        .order_by(charges_table.c.account)
        .with_for_update()
    )
    return [_charge(row) for row in rows]


def _charge(row: Row[Any]) -> Charge:
    return Charge(row.account, _cost(row), row.events, row.state)


def _cost(row: Row[Any]) -> Cost:
    try:
        return Cost(row.rho, row.epsilon, row.delta, row.divergence)
    except ValueError:
        raise DataLoss(f"what the round {row.round_id} charges account {row.account} is damaged") from None


def _settle(connection: Connection, round_id: str, charge: Charge, state: str) -> None:
    connection.execute(
        charges_table.update()
        .where(charges_table.c.round_id == round_id, charges_table.c.account == charge.account)
        .values(state=state, events=charge.events, **asdict(charge.cost))
    )
