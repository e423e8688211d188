"""The accounts of both ledgers: reserve before data are touched, then spend, or release if none were.

Data: `data/<dataset>`, to which every round adds. Analysts: `analyst/<dataset>/<unit>/<analyst>`; for unit
"query" a statement lives in one round only, so the worst round counts; for unit "analyst" rounds add.

Every function works in the transaction of the connection it is given and commits nothing. Whatever is
committed (reserved or spent) counts against the cap: in doubt means spent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, select

from equipoise.accounting import DELTA_UNIT, RHO_UNIT, Cost
from equipoise.errors import BudgetExhausted, NotFound
from equipoise_server.ledger import journal
from equipoise_server.ledger.caps import Cap, Composition, fits, limits, worst
from equipoise_server.storage.tables import accounts, charges


@dataclass(frozen=True)
class Account:
    """What stands on one account. `committed` is what is spent or reserved."""

    name: str
    dataset: str
    composition: Composition
    cap: Cap
    limit: Cost
    spent: Cost
    committed: Cost


@dataclass(frozen=True)
class Charge:
    """What one round costs one account. `events` says as JSON what the amount was computed from."""

    account: str
    cost: Cost
    events: str


def data_account(dataset: str) -> str:
    """The name of a dataset's data account."""
    return f"data/{dataset}"


def analyst_account(dataset: str, unit: str, analyst: str) -> str:
    """The name of an analyst's account."""
    return f"analyst/{dataset}/{unit}/{analyst}"


def events_of(mechanism: str, cost: Cost) -> str:
    """A cost as `dp_accounting` events in JSON, with the mechanism's name; zero parts are left out."""
    events: list[dict[str, object]] = []
    if cost.rho:
        events.append({"event": "ZCDpEvent", "rho": f"{cost.rho}/{RHO_UNIT}"})
    if cost.epsilon or cost.delta:
        pair = {"epsilon": f"{cost.epsilon}/{RHO_UNIT}", "delta": f"{cost.delta}/{DELTA_UNIT}"}
        events.append({"event": "EpsilonDeltaDpEvent", **pair})
    return json.dumps({"mechanism": mechanism, "events": events}, sort_keys=True, separators=(",", ":"))


def open_account(
    connection: Connection, time: datetime, name: str, *, dataset: str, composition: Composition, cap: Cap
) -> None:
    """Open an account with nothing on it; an account that is there stays as it is."""
    if connection.execute(select(accounts.c.name).where(accounts.c.name == name)).first() is not None:
        return
    limit = limits(cap)
    connection.execute(
        accounts.insert().values(
            name=name,
            dataset=dataset,
            composition=composition.value,
            cap_epsilon=cap.epsilon,
            cap_delta=cap.delta,
            **_columns("limit", limit),
            **_columns("spent", Cost()),
            **_columns("committed", Cost()),
        )
    )
    events = json.dumps({"cap": {"epsilon": cap.epsilon, "delta": cap.delta}, "composition": composition})
    journal.append(connection, time, "open-account", account=name, cost=Cost(), events=events)


def account(connection: Connection, name: str) -> Account:
    """One account. Raises `NotFound`."""
    row = connection.execute(select(accounts).where(accounts.c.name == name)).first()
    if row is None:
        raise NotFound("there is no such account")
    return _account(row)


def page(connection: Connection, dataset: str, after_name: str, limit: int) -> list[Account]:
    """At most `limit` accounts of a dataset in the order of their names."""
    rows = connection.execute(
        select(accounts)
        .where(accounts.c.dataset == dataset, accounts.c.name > after_name)
        .order_by(accounts.c.name)
        .limit(limit)
    )
    return [_account(row) for row in rows]


def total_with(held: Account, cost: Cost) -> Cost:
    """What would be committed with one more charge. Raises `BudgetExhausted` if the cap does not allow it."""
    added = cost if held.composition is Composition.WORST else held.committed + cost
    if not fits(added, held.cap, held.limit):
        raise BudgetExhausted(
            f"account {held.name}: this round does not fit under the cap of "
            f"epsilon {held.cap.epsilon:g} at delta {held.cap.delta:g}"
        )
    return worst([held.committed, cost], held.cap) if held.composition is Composition.WORST else added


def reserve(connection: Connection, round_id: str, asked: Sequence[Charge], time: datetime) -> None:
    """Reserve a round's charges on all of its accounts, or on none. Raises `BudgetExhausted`.

    A crash before the commit means: nothing is reserved, and no data have been touched. After it: the whole
    is reserved, and counts until it is spent or released.
    """
    # Always in the order of the names, so that two rounds never wait for each other's accounts.
    for charge in sorted(asked, key=lambda charge: charge.account):
        # The update holds only if nobody changed the account since it was read; otherwise read it again.
        while not _commit(connection, account(connection, charge.account), charge.cost):
            pass
        connection.execute(
            charges.insert().values(
                round_id=round_id,
                account=charge.account,
                state="reserved",
                rho=charge.cost.rho,
                epsilon=charge.cost.epsilon,
                delta=charge.cost.delta,
                events=charge.events,
            )
        )
        _record(connection, time, "reserve", round_id, charge)


def spend(connection: Connection, round_id: str, time: datetime) -> None:
    """Spend all that a round has reserved. Never refused: what is reserved fits already.

    A crash before the commit means: still reserved, which counts the same against the cap.
    """
    for charge in _reserved(connection, round_id):
        held = account(connection, charge.account)
        spent = [held.spent, charge.cost]
        total = worst(spent, held.cap) if held.composition is Composition.WORST else held.spent + charge.cost
        _settle(connection, round_id, charge, "spent")
        _update(connection, held.name, _columns("spent", total))
        _record(connection, time, "spend", round_id, charge)


def release(connection: Connection, round_id: str, time: datetime) -> None:
    """Give back all that a round has reserved; only for a round that has touched no data.

    A crash before the commit means: still reserved, so too much is counted, never too little.
    """
    for charge in _reserved(connection, round_id):
        held = account(connection, charge.account)
        _settle(connection, round_id, charge, "released")
        total = (
            worst(_live(connection, held.name), held.cap)
            if held.composition is Composition.WORST
            else _difference(held.committed, charge.cost)
        )
        _update(connection, held.name, _columns("committed", total))
        _record(connection, time, "release", round_id, charge)


def _commit(connection: Connection, held: Account, cost: Cost) -> bool:
    """One conditional update; behind it the table's CHECK refuses what exceeds the limits."""
    total = total_with(held, cost)
    changed = connection.execute(
        accounts.update()
        .where(
            accounts.c.name == held.name,
            *(accounts.c[name] == value for name, value in _columns("committed", held.committed).items()),
            *(accounts.c[name] == value for name, value in _columns("limit", held.limit).items()),
        )
        .values(_columns("committed", total))
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
        select(charges)
        .where(charges.c.round_id == round_id, charges.c.state == "reserved")
        .order_by(charges.c.account)
        .with_for_update()
    )
    return [Charge(row.account, Cost(row.rho, row.epsilon, row.delta), row.events) for row in rows]


def _live(connection: Connection, name: str) -> list[Cost]:
    """Every charge of an account that has not been given back."""
    rows = connection.execute(
        select(charges.c.rho, charges.c.epsilon, charges.c.delta).where(
            charges.c.account == name, charges.c.state != "released"
        )
    )
    return [Cost(row.rho, row.epsilon, row.delta) for row in rows]


def _settle(connection: Connection, round_id: str, charge: Charge, state: str) -> None:
    connection.execute(
        charges.update()
        .where(charges.c.round_id == round_id, charges.c.account == charge.account)
        .values(state=state)
    )


def _update(connection: Connection, name: str, columns: dict[str, int]) -> None:
    connection.execute(accounts.update().where(accounts.c.name == name).values(columns))


def _columns(prefix: str, cost: Cost) -> dict[str, int]:
    return {f"{prefix}_rho": cost.rho, f"{prefix}_epsilon": cost.epsilon, f"{prefix}_delta": cost.delta}


def _difference(total: Cost, part: Cost) -> Cost:
    return Cost(total.rho - part.rho, total.epsilon - part.epsilon, total.delta - part.delta)


def _account(row: Row[tuple[object, ...]]) -> Account:
    return Account(
        row.name,
        row.dataset,
        Composition(row.composition),
        Cap(row.cap_epsilon, row.cap_delta),
        Cost(row.limit_rho, row.limit_epsilon, row.limit_delta),
        Cost(row.spent_rho, row.spent_epsilon, row.spent_delta),
        Cost(row.committed_rho, row.committed_epsilon, row.committed_delta),
    )
