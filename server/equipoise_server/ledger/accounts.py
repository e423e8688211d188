"""The accounts of both ledgers and what fits on them.

Data: `data/<dataset>`, to which every round adds. Analysts: `analyst/<dataset>/<unit>/<analyst>`; for unit
"query" a statement lives in one round only, so the worst round counts; for unit "analyst" rounds add.

Every function works in the transaction of the connection it is given and commits nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, select

from equipoise.accounting import Cost
from equipoise.errors import BudgetExhausted, NotFound
from equipoise_server.ledger import journal
from equipoise_server.ledger.caps import Cap, Composition, fits, limits, worst
from equipoise_server.storage.tables import accounts


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


def data_account(dataset: str) -> str:
    """The name of a dataset's data account."""
    return f"data/{dataset}"


def analyst_account(dataset: str, unit: str, analyst: str) -> str:
    """The name of an analyst's account."""
    return f"analyst/{dataset}/{unit}/{analyst}"


def open_account(
    connection: Connection, time: datetime, name: str, *, dataset: str, composition: Composition, cap: Cap
) -> None:
    """Open an account; one that is there stays as it is. It begins with what was written off under its name."""
    if connection.execute(select(accounts.c.name).where(accounts.c.name == name)).first() is not None:
        return
    lost = written_off(connection, name)
    begun = worst(lost, cap) if composition is Composition.WORST else sum(lost, Cost())
    limit = widened(limits(cap), begun)
    connection.execute(
        accounts.insert().values(
            name=name,
            dataset=dataset,
            composition=composition.value,
            cap_epsilon=cap.epsilon,
            cap_delta=cap.delta,
            **columns("limit", limit),
            **columns("spent", begun),
            **columns("committed", begun),
        )
    )
    events = json.dumps({"cap": {"epsilon": cap.epsilon, "delta": cap.delta}, "composition": composition})
    journal.append(connection, time, "open-account", account=name, cost=Cost(), events=events)


def written_off(connection: Connection, name: str) -> list[Cost]:
    """What was written off under an account's name, also while there was no such account."""
    return [entry.cost for entry in journal.of_account(connection, name, 0, None) if entry.action == "write-off"]


def account(connection: Connection, name: str, *, locked: bool = False) -> Account:
    """One account; `locked` keeps it as it is until the transaction ends. Raises `NotFound`."""
    query = select(accounts).where(accounts.c.name == name)
    row = connection.execute(query.with_for_update() if locked else query).first()
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


def all_accounts(connection: Connection) -> list[Account]:
    """Every account in the order of the names."""
    return [_account(row) for row in connection.execute(select(accounts).order_by(accounts.c.name))]


def all_committed(connection: Connection) -> dict[str, Cost]:
    """What is spent or reserved on every account."""
    kept = (accounts.c.name, accounts.c.committed_rho, accounts.c.committed_epsilon, accounts.c.committed_delta)
    rows = connection.execute(select(*kept).order_by(accounts.c.name))
    return {name: Cost(rho, epsilon, delta) for name, rho, epsilon, delta in rows}


def change(connection: Connection, name: str, values: Mapping[str, object]) -> None:
    """Set columns of an account."""
    connection.execute(accounts.update().where(accounts.c.name == name).values(values))


def widened(limit: Cost, committed: Cost) -> Cost:
    """The limits of an account on which more was written off than its cap allows: nothing more fits, by the cap."""
    return Cost(
        max(limit.rho, committed.rho), max(limit.epsilon, committed.epsilon), max(limit.delta, committed.delta)
    )


def total_with(held: Account, cost: Cost) -> Cost:
    """What would be committed with one more charge. Raises `BudgetExhausted` if the cap does not allow it."""
    added = cost if held.composition is Composition.WORST else held.committed + cost
    if not fits(added, held.cap, held.limit):
        raise BudgetExhausted(
            f"account {held.name}: this round does not fit under the cap of "
            f"epsilon {held.cap.epsilon:g} at delta {held.cap.delta:g}"
        )
    return worst([held.committed, cost], held.cap) if held.composition is Composition.WORST else added


def columns(prefix: str, cost: Cost) -> dict[str, int]:
    """An amount as the three columns whose names begin with `prefix`."""
    return {f"{prefix}_rho": cost.rho, f"{prefix}_epsilon": cost.epsilon, f"{prefix}_delta": cost.delta}


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
