"""What is known of accounts and datasets that were lost with a store and have not been opened or registered again.

They are in no table. An account's losses are in the journal alone, and count once the account is opened. Which
account a lost dataset shared is in the journal, too: under its name it is never given another one. The rollback
guard must know both like those of the store. Otherwise a second restore of the same copy would forget them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import astuple, dataclass

from sqlalchemy import Connection, select

from equipoise.accounting import Cost
from equipoise_server.ledger import journal
from equipoise_server.ledger.accounts import all_committed, all_orders
from equipoise_server.ledger.caps import MAX_AMOUNT, saturated
from equipoise_server.storage.tables.ledger import accounts
from equipoise_server.storage.tables.round import datasets

SHARED = "shared"  # the field of a write-off's first entry that says which accounts lost datasets had shared


@dataclass(frozen=True)
class Loss:
    """The total of one account's write-offs, and the Renyi order of its amount; None where rounds do not add."""

    cost: Cost
    order: float | None


def of_lost_accounts(connection: Connection) -> dict[str, Loss]:
    """Returns the total of all write-offs of every account that is not in the store, by the account's name."""
    first = journal.of_account(connection, "", 0, 1)
    if not first:
        return {}
    open_accounts = {*connection.execute(select(accounts.c.name)).scalars()}
    losses_of = defaultdict[str, list[Loss]](list)
    for entry in journal.of_action(connection, "write-off", first[0].sequence):
        if entry.account and entry.account not in open_accounts:
            losses_of[entry.account].append(Loss(entry.cost, json.loads(entry.events).get("order")))
    return {name: _together(losses) for name, losses in losses_of.items()}


def shared_accounts(connection: Connection) -> dict[str, str]:
    """Return the account of every dataset that shares another one's, by the dataset's name, also of lost ones."""
    shared = select(datasets.c.name, datasets.c.account).where(datasets.c.account != datasets.c.name)
    return of_lost_datasets(connection) | {row.name: row.account for row in connection.execute(shared)}


def of_lost_datasets(connection: Connection) -> dict[str, str]:
    """Return the account that each dataset which a restored store has lost had shared, by the dataset's name."""
    lost: dict[str, str] = {}
    for entry in journal.of_account(connection, "", 0, None):
        lost |= json.loads(entry.events).get(SHARED, {})
    there = {*connection.execute(select(datasets.c.name)).scalars()} if lost else set()
    return {name: account for name, account in lost.items() if name not in there}


def all_known(connection: Connection) -> tuple[dict[str, Cost], dict[str, float]]:
    """Returns what is spent, reserved or lost on every account, and the orders of those to which rounds add."""
    # Losses are read first: an account that is opened in between begins with them, so none is missed.
    lost = of_lost_accounts(connection)
    committed = {name: loss.cost for name, loss in lost.items()} | all_committed(connection)
    orders = {name: loss.order for name, loss in lost.items() if loss.order is not None}
    return committed, orders | all_orders(connection)


def largest(one: Cost, other: Cost) -> Cost:
    """Returns the larger of two costs, amount by amount."""
    return Cost(*map(max, astuple(one), astuple(other)))


def _together(losses: list[Loss]) -> Loss:
    """Sum the losses where rounds add. Elsewhere the worst counts, which the largest of each amount bounds."""
    orders = {loss.order for loss in losses}
    if orders == {None}:
        cost = Cost()
        for loss in losses:
            cost = largest(cost, loss.cost)
        return Loss(cost, None)
    order = max(loss_order for loss_order in orders if loss_order is not None)
    if len(orders) > 1:  # Losses at several orders cannot be added, so the account is marked as exhausted.
        return Loss(Cost(divergence=MAX_AMOUNT), order)
    return Loss(saturated(sum((loss.cost for loss in losses), Cost())), order)
