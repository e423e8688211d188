"""The accounts of both ledgers and what fits on them.

Datasets of the same people have one account. Its name is that of the first of them, and everything else carries
this name as `account`. It consists of the data account `data/<account>`, to which every round on any of these
datasets adds, and of the analysts' accounts `analyst/<account>/<unit>/<analyst>`. For unit "query" a statement
lives in one round only, so the worst round counts, whichever unit that round has. For unit "analyst" the rounds of
that unit add; rounds of the other unit promise nothing for everything that an analyst asks. An account to which
rounds add counts divergences at one Renyi order, which is fixed when it is opened (`caps`).

Every function works in the transaction of the connection it is given and commits nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, Row, select

from equipoise.accounting import Cost
from equipoise.errors import BudgetExhausted, DataLoss, NotFound
from equipoise_server.ledger import journal
from equipoise_server.ledger.caps import Cap, Composition, combined, fits, limits, no_room_in_words
from equipoise_server.ledger.write_offs import write_offs_of
from equipoise_server.storage.tables.ledger import accounts


@dataclass(frozen=True)
class Account:
    """The state of one account, `name`, that belongs to `account`. `committed`: all that is spent or reserved."""

    name: str
    account: str
    composition: Composition
    cap: Cap
    limit: Cost
    spent: Cost
    committed: Cost


def open_account(
    connection: Connection,
    time: datetime,
    name: str,
    *,
    account: str,
    composition: Composition,
    cap: Cap,
    beside: Sequence[str] = (),
) -> None:
    """Open the account `name`, with everything that was written off under it. An existing one is left unchanged.

    `account`: of the people, to which it belongs. `beside`: the accounts that count for the same records;
    the journal entry names them.

    Raises:
        ValueError: the cap has an order and rounds do not add, or it has none and rounds add.
        DataLoss: the losses under this name were counted at another order.
    """
    _check_order(composition, cap)
    if connection.execute(select(accounts.c.name).where(accounts.c.name == name)).first() is not None:
        return
    opening_state = unopened(connection, name, account=account, composition=composition, cap=cap)
    connection.execute(
        accounts.insert().values(
            name=name,
            account=account,
            composition=composition.value,
            cap_epsilon=cap.epsilon,
            cap_delta=cap.delta,
            renyi_order=cap.order,
            **columns("limit", opening_state.limit),
            **columns("spent", opening_state.spent),
            **columns("committed", opening_state.committed),
        )
    )
    opening = {"cap": {"epsilon": cap.epsilon, "delta": cap.delta}, "composition": composition}
    others = {"beside": list(beside)} if beside else {}
    events = json.dumps(opening | order_field(cap.order) | others)
    journal.append(connection, time, "open-account", account=name, cost=Cost(), events=events)


def unopened(connection: Connection, name: str, *, account: str, composition: Composition, cap: Cap) -> Account:
    """Return an account as `open_account` would open it, with its write-offs. Raises `DataLoss` as that does.

    Args:
        connection: to the store.
        name: of the account.
        account: of the people, to which it belongs.
        composition: how the costs of its rounds add up.
        cap: what it may spend.
    """
    lost = write_offs_of(connection, name)
    if any(order != cap.order for order, _ in lost):
        raise DataLoss(f"what was written off of account {name} was counted at another order than it would be")
    carried = combined([cost for _, cost in lost], composition, cap)
    return Account(name, account, composition, cap, widened(limits(cap), carried), carried, carried)


def order_field(order: float | None) -> dict[str, float]:
    """Return the field by which a journal entry states its Renyi order; empty where rounds do not add."""
    return {} if order is None else {"order": order}


def account(connection: Connection, name: str, *, locked: bool = False) -> Account:
    """Return one account; `locked` locks its row until the transaction ends. Raises `NotFound`.

    Args:
        connection: to the store.
        name: of the account.
        locked: whether its row is locked until the transaction ends.
    """
    query = select(accounts).where(accounts.c.name == name)
    row = connection.execute(query.with_for_update() if locked else query).first()
    if row is None:
        raise NotFound("there is no such account")
    return _account(row)


def page(connection: Connection, account: str, after_name: str, limit: int) -> list[Account]:
    """Return at most `limit` of an account's parts whose names follow `after_name`, in the order of their names.

    Args:
        connection: to the store.
        account: of which the parts are listed.
        after_name: the last name that is not wanted; empty: from the first on.
        limit: how many at most.
    """
    rows = connection.execute(
        select(accounts)
        .where(accounts.c.account == account, accounts.c.name > after_name)
        .order_by(accounts.c.name)
        .limit(limit)
    )
    return [_account(row) for row in rows]


def all_of(connection: Connection, account: str) -> list[Account]:
    """Return all parts of an account in the order of their names."""
    query = select(accounts).where(accounts.c.account == account).order_by(accounts.c.name)
    return [_account(row) for row in connection.execute(query)]


def all_accounts(connection: Connection) -> list[Account]:
    """Return every account in the order of the names."""
    return [_account(row) for row in connection.execute(select(accounts).order_by(accounts.c.name))]


def all_committed(connection: Connection) -> dict[str, Cost]:
    """Return the amount that is spent or reserved on every account, by name."""
    kept = [accounts.c[name] for name in columns("committed", Cost())]
    rows = connection.execute(select(accounts.c.name, *kept).order_by(accounts.c.name))
    return {name: Cost(*amounts) for name, *amounts in rows}


def all_orders(connection: Connection) -> dict[str, float]:
    """Return the Renyi orders of the accounts to which rounds add."""
    query = select(accounts.c.name, accounts.c.renyi_order).where(accounts.c.renyi_order.is_not(None))
    return {row.name: row.renyi_order for row in connection.execute(query)}


def change(connection: Connection, name: str, values: Mapping[str, object]) -> None:
    """Set columns of the account `name` to `values`."""
    connection.execute(accounts.update().where(accounts.c.name == name).values(values))


def widened(limit: Cost, committed: Cost) -> Cost:
    """Return limits that are raised to what is committed, where a write-off exceeded them.

    The cap itself is unchanged, so nothing more fits.
    """
    return Cost(
        max(limit.rho, committed.rho),
        max(limit.epsilon, committed.epsilon),
        max(limit.delta, committed.delta),
        max(limit.divergence, committed.divergence),
    )


def total_with(account: Account, cost: Cost) -> Cost:
    """Return what would be committed with one more charge. Raises `BudgetExhausted` where it does not fit."""
    added = cost if account.composition is Composition.PARALLEL else account.committed + cost
    # A write-off may have widened the stored limit, so that the table's CHECK holds: the cap's own limit decides.
    limit = limits(account.cap)
    if not (fits(added, account.cap, limit) and fits(added, account.cap, account.limit)):
        raise BudgetExhausted(f"account {account.name}: {no_room_in_words(account.cap, account.committed, cost)}")
    return combined([account.committed, cost], account.composition, account.cap)


def free_part(account: Account) -> float:
    """Return the free part of an account's limits, from 1 to 0: the smallest one of all limited amounts."""
    amounts = zip(astuple(account.committed), astuple(account.limit), strict=True)
    return min((1 - committed / limit for committed, limit in amounts if limit), default=0.0)


def check_room(standing: Account, pending: Sequence[Cost], cost: Cost) -> None:
    """Check that a new round fits beside what is committed and what other open rounds will reserve.

    Nothing is reserved. `pending`: what each open round will reserve on the account when it is sealed. Raises
    `BudgetExhausted` where the round does not fit.
    """
    reserved = combined([standing.committed, *pending], standing.composition, standing.cap)
    try:
        total_with(replace(standing, committed=reserved), cost)
    except BudgetExhausted as error:
        if not pending or standing.composition is Composition.PARALLEL:
            raise
        counted = "rounds that are open and not sealed yet are counted too, as each of them can be sealed"
        raise BudgetExhausted(f"{error.message}; {counted} ({len(pending)} here)") from None


def columns(prefix: str, cost: Cost) -> dict[str, int]:
    """Return the values of the four columns that begin with `prefix`, in the order of `Cost`'s fields."""
    return {
        f"{prefix}_rho": cost.rho,
        f"{prefix}_epsilon": cost.epsilon,
        f"{prefix}_delta": cost.delta,
        f"{prefix}_divergence": cost.divergence,
    }


def _check_order(composition: Composition, cap: Cap) -> None:
    if (cap.order is None) is not (composition is Composition.PARALLEL):
        raise ValueError("an order must be set where rounds add up, and only there")


def _account(row: Row[tuple[object, ...]]) -> Account:
    try:
        composition = Composition(row.composition)
        cap = Cap(row.cap_epsilon, row.cap_delta, row.renyi_order)
        _check_order(composition, cap)
        return Account(
            row.name,
            row.account,
            composition,
            cap,
            Cost(row.limit_rho, row.limit_epsilon, row.limit_delta, row.limit_divergence),
            Cost(row.spent_rho, row.spent_epsilon, row.spent_delta, row.spent_divergence),
            Cost(row.committed_rho, row.committed_epsilon, row.committed_delta, row.committed_divergence),
        )
    except ValueError:
        raise DataLoss(f"account {row.name} is damaged") from None
